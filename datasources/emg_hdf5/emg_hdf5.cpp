#include "emg_hdf5.hpp"

#include <algorithm>
#include <array>

namespace emg_hdf5 {

namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // records of a window, a stride or its context

WindowShape shape_of(const sdk::Options& options) {
  const std::vector<int64_t> padding = options.list_i64("padding");
  if (padding.size() != 2) {
    sdk::invalid("padding has " + std::to_string(padding.size()) +
                 " values; two are needed: records before and after the window");
  }
  const auto records = [](int64_t number) { return static_cast<uint64_t>(number); };
  return {records(options.i64("window_size")), records(options.i64("stride")), records(padding[0]),
          records(padding[1])};
}

SplitOptions split_options(const sdk::Options& options) {
  SplitOptions result{options.path("path"), std::nullopt, options.string("splits"),
                      options.boolean("skip_missing_files")};
  if (options.has("metadata")) result.metadata = options.path("metadata");
  return result;
}

}  // namespace

sdk::OptionList EmgSource::options() {
  using namespace sdk;
  return {
      opt_path("path").required().help("folder of recordings (*.hdf5, *.h5), or one recording"),
      opt_i64("window_size").def(500).min(1).max(kMost).help("records in a window"),
      opt_i64("stride").def(1).min(1).max(kMost).help("records from one window's start to the next"),
      opt_bool("jitter").def(true).help("in training, a window starts up to stride - 1 records later"),
      opt_i64s("padding").def("[0, 0]").min(0).max(kMost).help("records of context [before, after] each window"),
      opt_bool("skip_ik_failures").def(true).help("windows without samples whose joint angles could not be solved"),
      opt_i64("channel_rotation").def(0).min(0).help("in training, roll the channels by up to this many either way"),
      opt_i64("parts").def(1).min(1).max(1000000).help("stretches of equal length each recording is cut into, as "
                                                       "groups that the host may put into different splits"),
      opt_string("splits")
          .def("auto")
          .choices({"auto", "metadata", "none"})
          .help("train, val and test as metadata.csv says where there is one (auto), always (metadata), never (none)"),
      opt_path("metadata").help("metadata.csv; default: metadata.csv or emg2pose_metadata.csv in the folder"),
      opt_bool("skip_missing_files").def(false).help("train on what is there when metadata.csv names more"),
  };
}

EmgSource::EmgSource(const sdk::Host& host, const sdk::Options& options)
    : host_(host),
      parts_(static_cast<uint64_t>(options.i64("parts"))),
      skip_ik_failures_(options.boolean("skip_ik_failures")),
      path_(options.path("path")) {
  selection_.shape = shape_of(options);
  selection_.jitter = options.boolean("jitter");
  selection_.channel_rotation = static_cast<uint64_t>(options.i64("channel_rotation"));
  const Found found = find_recordings(host, split_options(options));
  metadata_ = found.metadata;
  for (const SplitFiles& files : found.splits) add_split(files);
  const uint64_t channels = selection_.layout.channels;
  if (selection_.channel_rotation >= channels) {
    sdk::invalid("channel_rotation = " + std::to_string(selection_.channel_rotation) + "; the recordings have " +
                 std::to_string(channels) + " channels, so at most " + std::to_string(channels - 1) + " is allowed");
  }
  if (std::ranges::all_of(selection_.splits, [](const auto& split) { return split.windows.length() == 0; }))
    throw_no_window();
}

void EmgSource::add_split(const SplitFiles& files) {
  Selection::Split split{files.name, WindowTable(selection_.shape), {}};
  for (const std::filesystem::path& file : files.files) {
    host_.throw_if_cancelled();
    const Description description = describe(host_, file);
    if (selection_.recordings.empty())
      selection_.layout = description.layout;
    else
      require_same({selection_.recordings.front(), selection_.layout}, description);

    selection_.recordings.push_back(description.recording);
    add_windows(split);
  }
  selection_.splits.push_back(std::move(split));
}

// Of the recording that was added last.
void EmgSource::add_windows(Selection::Split& split) {
  const Recording& recording = selection_.recordings.back();
  const auto number = static_cast<uint32_t>(selection_.recordings.size() - 1);
  const std::vector<Block> blocks = blocks_of(recording);
  for (uint64_t part = 0; part < parts_; ++part) {
    const Block stretch{recording.records * part / parts_, recording.records * (part + 1) / parts_};
    const uint64_t first = split.windows.length();
    for (const Block& whole : blocks) {
      const Block block{std::max(whole.begin, stretch.begin), std::min(whole.end, stretch.end)};
      if (block.begin >= block.end) continue;
      longest_block_ = std::max(longest_block_, block.end - block.begin);
      split.windows.add(number, block);
    }
    const uint64_t count = split.windows.length() - first;
    const std::string name = parts_ == 1 ? recording.name : recording.name + "#" + std::to_string(part);
    if (count > 0) split.groups.push_back({name, first, count});
    if (count == 0) host_.debug(name + " has no window");
  }
}

std::vector<Block> EmgSource::blocks_of(const Recording& recording) const {
  if (!skip_ik_failures_) return {{0, recording.records}};
  constexpr uint64_t portion = 4096;
  const TimeSeries series(host_, recording.file);
  std::vector<double> angles(std::min(portion, recording.records) * series.joints);
  std::vector<uint8_t> valid;
  BlockScanner scanner(selection_.shape.size);
  for (uint64_t first = 0; first < recording.records; first += portion) {
    host_.throw_if_cancelled();
    const uint64_t count = std::min(portion, recording.records - first);
    const std::array targets = {sdk::target(angles.data(), series.angles)};
    series.array.read_rows(first, count, targets);
    valid.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      valid[i] = ik_valid<double>(std::span(angles).subspan(i * series.joints, series.joints)) ? 1 : 0;
    }
    scanner.add(valid);
  }
  return scanner.finish();
}

void EmgSource::throw_no_window() const {
  const std::string window = std::to_string(selection_.shape.size);
  std::string sentence = "no window of " + window + " records fits into any of the " +
                         std::to_string(selection_.recordings.size()) + " recordings of " + path_.string();
  if (!skip_ik_failures_) {
    sdk::invalid(sentence + ": the longest has " + std::to_string(longest_block_) + "; lower window_size");
  }
  sdk::invalid(sentence + " without an IK failure; lower window_size, or set skip_ik_failures = false");
}

std::vector<sdk::Field> EmgSource::fields() const {
  const Layout& layout = selection_.layout;
  const auto samples = static_cast<int64_t>(selection_.shape.samples());
  sdk::Field emg{.name = "emg", .shape = {samples, static_cast<int64_t>(layout.channels)}, .axes = {"time", "channel"}};
  emg.unit = layout.emg_unit;
  emg.channel_axis = 1;
  emg.normalize = true;
  sdk::Field angles{
      .name = "joint_angles", .shape = {samples, static_cast<int64_t>(layout.joints)}, .axes = {"time", "joint"}};
  angles.unit = layout.angle_unit;
  angles.channel_axis = 1;
  sdk::Field valid{.name = "valid", .dtype = sdk::u8, .shape = {samples}, .axes = {"time"}};
  std::vector<sdk::Field> fields = {emg, angles, valid};
  for (sdk::Field& field : fields) field.sample_rate_hz = layout.sample_rate_hz;
  return fields;
}

std::vector<std::string> EmgSource::splits() const {
  std::vector<std::string> names;
  for (const auto& split : selection_.splits) names.push_back(split.name);
  return names;
}

uint64_t EmgSource::length(uint32_t split) const {
  return split < selection_.splits.size() ? selection_.splits[split].windows.length() : 0;
}

std::vector<sdk::Group> EmgSource::groups(uint32_t split) const { return selection_.splits.at(split).groups; }

bool EmgSource::augments() const {
  return (selection_.jitter && selection_.shape.stride > 1) || selection_.channel_rotation > 0;
}

// All fields show the same records.
std::optional<sdk::Position> EmgSource::position(uint32_t, uint32_t split, uint64_t index) const {
  const Window window = selection_.splits.at(split).windows.at(index);
  const WindowShape& shape = selection_.shape;
  return sdk::Position{static_cast<int64_t>(window.start) - static_cast<int64_t>(shape.left), shape.samples(),
                       selection_.recordings[window.recording].records};
}

// Of the EMG, where neither context beyond a recording's ends nor rolled channels come in between.
std::vector<sdk::Origin> EmgSource::origins(uint32_t field) const {
  std::vector<sdk::Origin> origins;
  const WindowShape& shape = selection_.shape;
  if (field != kEmg || shape.left + shape.right > 0 || selection_.channel_rotation > 0) return origins;
  for (const Recording& recording : selection_.recordings) origins.push_back({recording.file, kDataset, "emg"});
  return origins;
}

std::vector<std::filesystem::path> EmgSource::files() const {
  std::vector<std::filesystem::path> files;
  for (const Recording& recording : selection_.recordings) files.push_back(recording.file);
  if (metadata_) files.push_back(*metadata_);
  return files;
}

}  // namespace emg_hdf5
