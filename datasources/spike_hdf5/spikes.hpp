// Streams of a spike camera: 1 bit a pixel and step, row-major, least significant bit first, no header. Public ones are
// stored bottom-up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "box.hpp"

namespace spike_hdf5 {

struct SpikeCamera {
  Size size;
  bool flip_vertical = true;  // the stream's first row is the lowest
  uint64_t frames = 0;        // of a stream so many count; 0: all
  uint64_t middle = 0;        // the spike frame around which they lie; 0: the stream's middle

  uint64_t frame_bytes() const { return size.pixels() / 8; }
};

// The spike frames of a file of `bytes`. HR_DATA_CORRUPT, naming it, where they are no whole number of them.
uint64_t spike_frames(const SpikeCamera& camera, const std::filesystem::path& file, uint64_t bytes);

// The spike frames of a stream that count.
struct StreamPart {
  uint64_t first = 0, frames = 0;
};

// Of a file of `bytes`. HR_DATA_CORRUPT as above; HR_INVALID_ARGUMENT where the stream does not hold them.
StreamPart counted_part(const SpikeCamera& camera, const std::filesystem::path& file, uint64_t bytes);

// Bytes of memory that counting takes.
uint64_t counting_bytes(uint64_t bins, const Box& box);

// Spikes of `box` in each of `bins` bins, [bins, height, width]: step t of T is in bin min(floor(t bins / T), bins -
// 1). They stand at the front of `room`, which has counting_bytes(). REQUIRES whole frames, at most 255 a bin.
std::span<const uint8_t> count_spikes(const SpikeCamera& camera, std::span<const std::byte> stream, uint64_t bins,
                                      const Box& box, std::span<uint8_t> room);

}  // namespace spike_hdf5
