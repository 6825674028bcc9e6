#include "recorded_sequence.hpp"

#include <span>

namespace spike_hdf5 {

namespace {

// Frames 0, 1, ..., last, last, last - 1, ..., 0, 0, 1, ...
uint64_t mirrored(uint64_t frame, uint64_t frames) {
  const uint64_t place = frame % (2 * frames);
  return place < frames ? place : 2 * frames - 1 - place;
}

// Of a slot that holds `count` frames, one.
template <class T>
std::span<T> frame_of(std::span<T> slot, uint64_t place, uint64_t count) {
  const size_t size = slot.size() / count;
  return slot.subspan(place * size, slot.empty() ? 0 : size);
}

}  // namespace

RecordedSequence::RecordedSequence(const sdk::Host& host, std::unique_ptr<Sequence> sequence, const Wanted& opened,
                                   const Selection& selection)
    : sequence_(std::move(sequence)),
      clip_length_(selection.clip_length),
      numbers_(opened),
      sharp_(opened.sharp),
      clips_(host, selection.transform) {}

std::vector<int64_t> RecordedSequence::shape(uint32_t field) const {
  if (field == numbers_.sharp && !sharp_) return {0, 0, 0, 0};
  const Facts& facts = sequence_->facts();
  const auto extent = [](uint64_t count) { return static_cast<int64_t>(count); };
  return {extent(clip_length_), extent(field == numbers_.voxel ? facts.bins : 3), extent(facts.frame.height),
          extent(facts.frame.width)};
}

void RecordedSequence::read(const sdk::ReadRequest& request) {
  for (uint64_t i = 0; i < request.count(); ++i) {
    for (uint64_t place = 0; place < clip_length_; ++place)
      read_frame(request, i, place, mirrored(request.index(i) + place, steps()));
  }
}

void RecordedSequence::read_frame(const sdk::ReadRequest& request, uint64_t sample, uint64_t place, uint64_t frame) {
  const Facts& facts = sequence_->facts();
  const Clip clip{frame, 1, {0, 0, facts.frame}};
  const auto read_image = [&](uint32_t field, Image image) {
    const auto planes = frame_of(request.bytes(field, sample), place, clip_length_);
    if (!planes.empty()) clips_.read_images(*sequence_, image, clip, planes);
  };
  if (numbers_.blur) read_image(*numbers_.blur, Image::blur);
  if (sharp_) read_image(numbers_.sharp, Image::sharp);
  if (!numbers_.voxel) return;
  const auto voxel = frame_of(request.slot<float>(*numbers_.voxel, sample), place, clip_length_);
  if (!voxel.empty()) clips_.read_voxels(*sequence_, clip, voxel);
}

}  // namespace spike_hdf5
