#include "reader.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace emg_hdf5 {

namespace {

using namespace sdk::literals;

// The part of a slot that records fill; what lies before and after is context that does not exist: zero.
template <class T>
std::span<T> fill_around(std::span<T> slot, const Slice& slice, uint64_t width) {
  if (slot.empty()) return slot;
  const std::size_t begin = slice.position * width, count = (slice.end - slice.begin) * width;
  std::fill_n(slot.begin(), begin, T{});
  std::fill(slot.begin() + static_cast<std::ptrdiff_t>(begin + count), slot.end(), T{});
  return slot.subspan(begin, count);
}

template <class Real>
void require_finite(std::span<const Real> values, uint64_t width, const char* member, const Recording& recording,
                    uint64_t first) {
  const auto bad = sdk::first_not_finite(values);
  if (!bad) return;
  throw sdk::Error(HR_DATA_CORRUPT,
                   recording.file.string() + ": " + kDataset + ": " + member + "[" + std::to_string(*bad % width) +
                       "] of record " + std::to_string(first + *bad / width) + " is " +
                       (std::isnan(values[*bad]) ? "NaN" : "infinite") + "; mend the recording or take it out");
}

template <class Real>
void mark_valid(std::span<const Real> angles, uint64_t joints, std::span<uint8_t> valid) {
  for (std::size_t i = 0; i < valid.size(); ++i) valid[i] = ik_valid(angles.subspan(i * joints, joints)) ? 1 : 0;
}

// As numpy.roll along the channels.
void roll(std::span<float> emg, uint64_t channels, uint64_t by) {
  if (by == 0) return;
  for (auto row = emg.begin(); row != emg.end(); row += static_cast<std::ptrdiff_t>(channels)) {
    std::rotate(row, row + static_cast<std::ptrdiff_t>(channels - by), row + static_cast<std::ptrdiff_t>(channels));
  }
}

uint64_t jitter_of(const Selection& selection, const Window& window, uint64_t key) {
  const uint64_t bound = selection.jitter ? window.jitter_bound(selection.shape) : 0;
  return bound > 0 ? sdk::below(key, "jitter"_site, bound) : 0;
}

// Channels to roll by, in [0, channels): -n..n with equal chance.
uint64_t rotation_of(const Selection& selection, uint64_t key) {
  const uint64_t most = selection.channel_rotation, channels = selection.layout.channels;
  if (most == 0) return 0;
  return (channels + sdk::below(key, "channel_rotation"_site, 2 * most + 1) - most) % channels;
}

}  // namespace

void Reader::read(const sdk::ReadRequest& request) {
  for (uint64_t i = 0; i < request.count(); ++i) read_sample(request, i);
}

void Reader::read_sample(const sdk::ReadRequest& request, uint64_t i) {
  const Selection& selection = *selection_;
  const Window window = selection.splits[request.split()].windows.at(request.index(i));
  const uint64_t key = request.key(i);
  const uint64_t start = window.start + (request.augment() ? jitter_of(selection, window, key) : 0);
  const Recording& recording = selection.recordings[window.recording];
  const Slice slice = slice_of(start, selection.shape, recording.records);
  const auto [channels, joints] = std::pair(selection.layout.channels, selection.layout.joints);

  const auto emg = fill_around(request.slot<float>(kEmg, i), slice, channels);
  auto angles = fill_around(request.slot<float>(kAngles, i), slice, joints);
  const auto valid = fill_around(request.slot<uint8_t>(kValid, i), slice, 1);
  const bool need_angles = !angles.empty() || !valid.empty();
  if (emg.empty() && !need_angles) return;

  const TimeSeries& series = open_.get(window.recording, [&] { return opened(window.recording); });
  std::vector<hr_array_target> targets;
  if (!emg.empty()) targets.push_back(sdk::target(emg.data(), series.emg));
  const std::size_t angle_count = (slice.end - slice.begin) * joints;
  if (need_angles && series.wide_angles) {
    wide_angles_.resize(angle_count);
    targets.push_back(sdk::target(wide_angles_.data(), series.angles));
  } else if (need_angles) {
    if (angles.empty()) {
      angles_.resize(angle_count);
      angles = angles_;
    }
    targets.push_back(sdk::target(angles.data(), series.angles));
  }
  const bool finite = series.array.read_rows_check_finite(slice.begin, slice.end - slice.begin, targets);
  if (!finite) require_finite<float>(emg, channels, "emg", recording, slice.begin);
  if (request.augment()) roll(emg, channels, rotation_of(selection, key));
  if (!need_angles) return;
  if (series.wide_angles) {
    if (!finite) require_finite<double>(wide_angles_, joints, "joint_angles", recording, slice.begin);
    mark_valid<double>(wide_angles_, joints, valid);
    if (!angles.empty())
      std::ranges::transform(wide_angles_, angles.begin(), [](double x) { return static_cast<float>(x); });
  } else {
    if (!finite) require_finite<float>(angles, joints, "joint_angles", recording, slice.begin);
    mark_valid<float>(angles, joints, valid);
  }
}

TimeSeries Reader::opened(uint32_t recording) const {
  TimeSeries series(host_, selection_->recordings[recording].file);
  if (series.channels != selection_->layout.channels || series.joints != selection_->layout.joints ||
      series.records() != selection_->recordings[recording].records) {
    throw sdk::Error(HR_DATA_CORRUPT, selection_->recordings[recording].file.string() +
                                          " has changed since this run opened it; start the run again");
  }
  return series;
}

}  // namespace emg_hdf5
