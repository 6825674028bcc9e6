#include "spike_hdf5/spikes.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace spike_hdf5 {
namespace {

std::vector<std::byte> stream_of(const Size& size, uint64_t frames) {
  std::vector<std::byte> stream;
  uint64_t state = 1;
  for (uint64_t i = 0; i < frames * size.pixels() / 8; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    stream.push_back(static_cast<std::byte>(state >> 56));
  }
  return stream;
}

// By the definition, bit by bit.
std::vector<uint8_t> defined(const SpikeCamera& camera, const std::vector<std::byte>& stream, uint64_t bins,
                             const Box& box) {
  const uint64_t frames = stream.size() / camera.frame_bytes();
  std::vector<uint8_t> counts(bins * box.size.pixels());
  for (uint64_t t = 0; t < frames; ++t) {
    for (uint64_t i = 0; i < box.size.pixels(); ++i) {
      const uint64_t y = box.top + i / box.size.width, x = box.left + i % box.size.width;
      const uint64_t row = camera.flip_vertical ? camera.size.height - 1 - y : y;
      const uint64_t bit = t * camera.size.pixels() + row * camera.size.width + x;
      const auto byte = std::to_integer<unsigned>(stream[bit / 8]);
      counts[std::min(t * bins / frames, bins - 1) * box.size.pixels() + i] += byte >> bit % 8 & 1;
    }
  }
  return counts;
}

TEST(SpikeStreams, AreCountedInBins) {
  const Size size{10, 24};
  for (const bool flipped : {true, false}) {
    for (const uint64_t frames : {1u, 10u, 33u, 64u}) {
      const SpikeCamera camera{size, flipped};
      const auto stream = stream_of(size, frames);
      for (const Box& box :
           {Box{0, 0, size}, Box{1, 8, {4, 8}}, Box{3, 5, {7, 13}}, Box{9, 23, {1, 1}}, Box{2, 0, {3, 9}}}) {
        for (const uint64_t bins : {1u, 7u, 32u}) {
          std::vector<uint8_t> room(counting_bytes(bins, box), 0xEE);
          const auto counts = count_spikes(camera, stream, bins, box, room);
          ASSERT_TRUE(std::ranges::equal(counts, defined(camera, stream, bins, box)))
              << flipped << " " << frames << " " << bins << " " << box.left;
        }
      }
    }
  }
}

TEST(SpikeStreams, UpTo255InABin) {
  const Size size{1, 8};
  const std::vector<std::byte> stream(255, std::byte{0xFF});
  std::vector<uint8_t> room(8);
  const auto counts = count_spikes({size}, stream, 1, {0, 0, size}, room);
  EXPECT_TRUE(std::ranges::all_of(counts, [](uint8_t count) { return count == 255; }));
}

}  // namespace
}  // namespace spike_hdf5
