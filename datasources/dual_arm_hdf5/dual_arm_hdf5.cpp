#include "dual_arm_hdf5.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "joints.hpp"
#include "split.hpp"

namespace dual_arm_hdf5 {

namespace {

constexpr float kLeastStd = 1e-2f;
constexpr uint64_t kPortion = 4096;  // rows read at a time for the statistics

std::string file_name(uint64_t number) { return "episode_" + std::to_string(number) + ".hdf5"; }

// Whether it is a name that file_name() gives: episode_0_backup.hdf5 is none.
bool is_file_name(std::string_view name) {
  constexpr std::string_view before = "episode_", after = ".hdf5";
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() <= before.size() + after.size()) return false;
  const std::string_view number = name.substr(before.size(), name.size() - before.size() - after.size());
  return number.find_first_not_of("0123456789") == number.npos && (number == "0" || number.front() != '0');
}

// episode_0.hdf5 to episode_<n-1>.hdf5, n = `wanted`, or as many as there are.
std::vector<std::filesystem::path> find_episodes(const sdk::Host& host, const std::filesystem::path& folder,
                                                 uint64_t wanted) {
  std::set<std::string> names;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    if (!entry.is_container && is_file_name(entry.name)) names.insert(entry.name);
  }
  if (names.empty())
    throw sdk::Error(HR_NOT_FOUND, "no episode (episode_0.hdf5, episode_1.hdf5, ...) lies in " + folder.string());
  std::vector<std::filesystem::path> files;
  const uint64_t count = wanted > 0 ? wanted : names.size();
  for (uint64_t number = 0; number < count; ++number) {
    if (!names.contains(file_name(number))) {
      sdk::invalid(folder.string() + " has no " + file_name(number) + ": " +
                   (wanted > 0 ? "num_episodes = " + std::to_string(wanted) + " asks for episode_0.hdf5 to " +
                                     file_name(wanted - 1)
                               : "its " + std::to_string(count) + " episodes must be numbered from 0 without gaps"));
    }
    files.push_back(folder / file_name(number));
  }
  return files;
}

std::string shown(const FrameSize& size) { return std::to_string(size.height) + "x" + std::to_string(size.width); }

void add_rows(const sdk::Host& host, const Episode& episode, const char* name, const sdk::Array& array,
              ColumnStatistics& statistics, std::vector<float>& values) {
  const uint64_t columns = array.info().shape[1];
  for (uint64_t first = 0; first < episode.steps(); first += kPortion) {
    host.throw_if_cancelled();
    const uint64_t rows = std::min(kPortion, episode.steps() - first);
    values.resize(rows * columns);
    const hr_array_target targets[] = {sdk::target(values.data())};
    array.read_rows(first, rows, targets);
    if (const auto at = sdk::first_not_finite<float>(values)) {
      throw sdk::Error(HR_DATA_CORRUPT,
                       episode.file.string() + ": " + name + "[" + std::to_string(first + *at / columns) + ", " +
                           std::to_string(*at % columns) + "] is no finite number; mend the episode or take it out");
    }
    for (uint64_t row = 0; row < rows; ++row) statistics.add(std::span(values).subspan(row * columns, columns));
  }
}

}  // namespace

sdk::OptionList DualArmSource::options() {
  using namespace sdk;
  return {
      opt_path("path").required().help("folder of episode_0.hdf5, episode_1.hdf5, ..., or one episode"),
      opt_i64("num_episodes")
          .def(0)
          .min(0)
          .max(1000000)
          .help("episodes opened, from 0 on; statistics and split see "
                "only these; 0: all"),
      opt_f64("train_ratio").def(0.8).min(0.0).max(1.0).help("share of the episodes that train; the rest validates"),
      opt_i64("split_seed").def(1).min(0).max(4294967295).help("of numpy's permutation that divides them"),
      opt_i64("samples_per_episode")
          .def(1)
          .min(0)
          .max(1000000)
          .help("samples of an epoch, each from a start drawn anew; 0: one sample for every step"),
      opt_strings("cameras").def("[]").help("in this order; []: all that the first episode has, in byte order"),
  };
}

DualArmSource::DualArmSource(const sdk::Host& host, const sdk::Options& options) : host_(host) {
  selection_.samples_per_episode = static_cast<uint64_t>(options.i64("samples_per_episode"));
  selection_.cameras = options.list_string("cameras");
  const std::filesystem::path path = options.path("path");
  const bool is_file = path.extension() == ".hdf5" || path.extension() == ".h5";
  const auto wanted = static_cast<uint64_t>(options.i64("num_episodes"));
  const auto files = is_file ? std::vector{path} : find_episodes(host, path, wanted);
  for (const std::filesystem::path& file : files) {
    host.throw_if_cancelled();
    add_episode(file);
  }
  measure();

  if (is_file) {
    add_split("all", {0});
    return;
  }
  const double train_ratio = options.f64("train_ratio");
  EpisodeSplit split = divide_episodes(files.size(), train_ratio, static_cast<uint32_t>(options.i64("split_seed")));
  if (split.train.empty()) {
    std::ostringstream ratio;
    ratio << train_ratio;
    sdk::invalid("train_ratio = " + ratio.str() + " leaves none of " + std::to_string(files.size()) +
                 " episodes to train on; raise it or add episodes");
  }
  add_split("train", std::move(split.train));
  if (!split.val.empty()) add_split("val", std::move(split.val));
}

void DualArmSource::add_episode(const std::filesystem::path& file) {
  const bool first = selection_.episodes.empty();
  if (first && selection_.cameras.empty()) {
    selection_.cameras = cameras_of(host_, file);
    if (selection_.cameras.empty())
      throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + kImages + " has no camera; at least one is needed");
  }
  const Episode episode(host_, file, selection_.cameras);
  if (first) {
    selection_.frame = FrameReader().size(episode, episode.cameras.front(), 0);
    selection_.joints = episode.joints();
    selection_.actions = episode.actions();
  }
  selection_.episodes.push_back(require_alike(episode, "; keep episodes of one robot in a folder",
                                              "; all cameras must have one size, so choose some with cameras = [...]"));
  selection_.longest = std::max(selection_.longest, episode.steps());
}

Selection::EpisodeFacts DualArmSource::require_alike(const Episode& episode, const std::string& joints_remedy,
                                                     const std::string& frames_remedy) const {
  const std::filesystem::path& file = episode.file;
  const auto require_same = [&](const char* dataset, uint64_t expected, uint64_t found) {
    if (found == expected) return;
    throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + dataset + " has " + std::to_string(found) + " joints, " +
                                          std::to_string(expected) + " in " +
                                          selection_.episodes.front().file.string() + joints_remedy);
  };
  require_same(kQpos, selection_.joints, episode.joints());
  require_same(kAction, selection_.actions, episode.actions());
  for (const Camera& camera : episode.cameras) {
    if (camera.is_jpeg() || camera.pixels == selection_.frame) continue;
    throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + camera.dataset + " has frames of " + shown(camera.pixels) +
                                          ", others have " + shown(selection_.frame) + frames_remedy);
  }
  return {file, file.stem().string(), episode.steps(), is_simulated(host_, file)};
}

RecordedEpisode DualArmSource::open_recording(const std::filesystem::path& file) const {
  const Episode episode(host_, file, selection_.cameras);
  auto selection = std::make_unique<Selection>(selection_);
  selection->episodes = {require_alike(episode, "; it must be of the robot that the others are of",
                                       "; it must have frames of their size")};
  selection->splits = {{"all", {0}, {0, episode.steps()}}};
  selection->samples_per_episode = 0;
  return RecordedEpisode(host_, std::move(selection));
}

void DualArmSource::add_split(const std::string& name, std::vector<uint64_t> episodes) {
  Selection::Split split{name, std::move(episodes), {0}};
  for (const uint64_t episode : split.episodes)
    split.first_sample.push_back(split.first_sample.back() + selection_.samples_of(episode));
  selection_.splits.push_back(std::move(split));
}

// Over all episodes, those that validate too.
void DualArmSource::measure() {
  uint64_t rows = 0;
  for (const auto& facts : selection_.episodes) rows += facts.steps;
  ColumnStatistics qpos(rows, selection_.joints), action(rows, selection_.actions);
  std::vector<float> values;
  for (const auto& facts : selection_.episodes) {
    const Episode episode(host_, facts.file, {});
    add_rows(host_, episode, kQpos, episode.qpos, qpos, values);
    add_rows(host_, episode, kAction, episode.action, action, values);
  }
  selection_.qpos_statistics = qpos.finish(kLeastStd);
  selection_.action_statistics = action.finish(kLeastStd);
}

std::vector<sdk::Field> DualArmSource::fields() const {
  const auto joints = static_cast<int64_t>(selection_.joints), actions = static_cast<int64_t>(selection_.actions),
             steps = static_cast<int64_t>(selection_.longest);
  std::vector<sdk::Field> fields(4);
  fields[kImageField] = {
      .name = "image",
      .dtype = sdk::u8,
      .shape = {static_cast<int64_t>(selection_.cameras.size()), 3, static_cast<int64_t>(selection_.frame.height),
                static_cast<int64_t>(selection_.frame.width)},
      .axes = {"camera", "colour", "row", "column"}};
  fields[kQposField] = {.name = "qpos", .shape = {joints}, .axes = {"joint"}, .unit = "rad", .channel_axis = 0};
  fields[kActionField] = {
      .name = "action", .shape = {steps, actions}, .axes = {"time", "joint"}, .unit = "rad", .channel_axis = 1};
  fields[kIsPadField] = {.name = "is_pad", .dtype = sdk::u8, .shape = {steps}, .axes = {"time"}};
  const Joints known = joints_of(host_, selection_.episodes.front().file);
  fields[kQposField].channels = joint_channels(known, selection_.qpos_statistics);
  fields[kActionField].channels = joint_channels(known, selection_.action_statistics);
  return fields;
}

std::vector<std::string> DualArmSource::splits() const {
  std::vector<std::string> names;
  for (const auto& split : selection_.splits) names.push_back(split.name);
  return names;
}

uint64_t DualArmSource::length(uint32_t split) const {
  return split < selection_.splits.size() ? selection_.splits[split].first_sample.back() : 0;
}

std::vector<sdk::Group> DualArmSource::groups(uint32_t split) const {
  std::vector<sdk::Group> groups;
  const Selection::Split& chosen = selection_.splits.at(split);
  for (std::size_t i = 0; i < chosen.episodes.size(); ++i) {
    const uint64_t first = chosen.first_sample[i];
    groups.push_back({selection_.episodes[chosen.episodes[i]].name, first, chosen.first_sample[i + 1] - first});
  }
  return groups;
}

std::vector<std::filesystem::path> DualArmSource::files() const {
  std::vector<std::filesystem::path> files;
  for (const auto& facts : selection_.episodes) files.push_back(facts.file);
  return files;
}

}  // namespace dual_arm_hdf5
