#include "reader.hpp"

#include <algorithm>
#include <array>

namespace dual_arm_hdf5 {

namespace {

using namespace sdk::literals;

// Rows of float32 as the original standardises them.
void standardise(std::span<float> rows, const Statistics& statistics) {
  const std::size_t columns = statistics.mean.size();
  for (std::size_t row = 0; row < rows.size(); row += columns) {
    for (std::size_t c = 0; c < columns; ++c) rows[row + c] = (rows[row + c] - statistics.mean[c]) / statistics.std[c];
  }
}

void read_rows(const sdk::Array& array, uint64_t first, uint64_t rows, float* to) {
  const std::array<uint64_t, 2> start{first, 0}, count{rows, array.info().shape[1]};
  const std::array targets = {sdk::target(to)};
  array.read_box(start, count, targets);
}

}  // namespace

uint64_t start_of(const Selection& selection, uint64_t episode, uint64_t sample, uint64_t key, bool draw) {
  const uint64_t steps = selection.episodes[episode].steps, parts = selection.samples_per_episode;
  if (parts == 0) return sample;
  if (draw) return sdk::below(key, "start"_site, steps);
  const double place = sdk::uniform(episode, "fixed start"_site, sample);
  return static_cast<uint64_t>((static_cast<double>(sample) + place) * static_cast<double>(steps) /
                               static_cast<double>(parts));
}

void Reader::read(const sdk::ReadRequest& request) {
  for (uint64_t i = 0; i < request.count(); ++i) read_sample(request, i);
}

void Reader::read_sample(const sdk::ReadRequest& request, uint64_t i) {
  const Selection& selection = *selection_;
  const Selection::Split& split = selection.splits[request.split()];
  const uint64_t index = request.index(i);
  const auto after = std::ranges::upper_bound(split.first_sample, index);
  const auto place = static_cast<std::size_t>(after - split.first_sample.begin()) - 1;
  const uint64_t number = split.episodes[place], sample = index - split.first_sample[place];
  const uint64_t start = start_of(selection, number, sample, request.key(i), request.augment());

  if (const auto image = request.slot<uint8_t>(kImageField, i); !image.empty()) {
    const Episode& episode = open(number);
    const std::size_t planes = image.size() / episode.cameras.size();
    for (std::size_t c = 0; c < episode.cameras.size(); ++c)
      frames_.read(episode, episode.cameras[c], start, selection.frame, image.subspan(c * planes, planes));
  }
  if (const auto qpos = request.slot<float>(kQposField, i); !qpos.empty()) {
    read_rows(open(number).qpos, start, 1, qpos.data());
    standardise(qpos, selection.qpos_statistics);
  }
  read_actions(request, i, number, start);
}

// Real recordings lag: what led to the observation at t is the action at t - 1.
void Reader::read_actions(const sdk::ReadRequest& request, uint64_t i, uint64_t number, uint64_t start) {
  const Selection::EpisodeFacts& facts = selection_->episodes[number];
  const uint64_t first = facts.simulated || start == 0 ? start : start - 1;
  const uint64_t there = std::min(facts.steps - first, selection_->longest);  // a recording may be longer
  if (const auto action = request.slot<float>(kActionField, i); !action.empty()) {
    read_rows(open(number).action, first, there, action.data());
    std::ranges::fill(action.subspan(there * selection_->actions), 0.0f);
    standardise(action, selection_->action_statistics);
  }
  if (const auto is_pad = request.slot<uint8_t>(kIsPadField, i); !is_pad.empty()) {
    std::ranges::fill(is_pad.first(there), uint8_t{0});
    std::ranges::fill(is_pad.subspan(there), uint8_t{1});
  }
}

Episode Reader::opened(uint64_t number) const {
  const Selection& selection = *selection_;
  const Selection::EpisodeFacts& facts = selection.episodes[number];
  Episode episode(host_, facts.file, selection.cameras);
  const bool raw_frames_fit = std::ranges::all_of(
      episode.cameras, [&](const Camera& camera) { return camera.is_jpeg() || camera.pixels == selection.frame; });
  if (episode.steps() != facts.steps || episode.joints() != selection.joints ||
      episode.actions() != selection.actions || !raw_frames_fit) {
    throw sdk::Error(HR_DATA_CORRUPT,
                     facts.file.string() + " has changed since this run opened it; start the run again");
  }
  return episode;
}

}  // namespace dual_arm_hdf5
