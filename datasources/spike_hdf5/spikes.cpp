#include "spikes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "headroom/sdk/error.hpp"

namespace spike_hdf5 {

namespace {

// A byte's bits, one a byte, in the order of the pixels.
constexpr std::array<std::array<uint8_t, 8>, 256> kBits = [] {
  std::array<std::array<uint8_t, 8>, 256> bits{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) bits[byte][bit] = byte >> bit & 1;
  }
  return bits;
}();

// counts[8 * count] += bits. No count reaches 256, so that eight are added as one number.
void add_bits(const std::byte* bytes, uint64_t count, uint8_t* counts) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t sum, more;
    std::memcpy(&sum, counts + 8 * i, sizeof sum);
    std::memcpy(&more, kBits[std::to_integer<std::size_t>(bytes[i])].data(), sizeof more);
    sum += more;
    std::memcpy(counts + 8 * i, &sum, sizeof sum);
  }
}

// The columns of a box, widened to whole bytes.
struct Columns {
  explicit Columns(const Box& box) : first(box.left / 8), bytes((box.left + box.size.width + 7) / 8 - first) {}
  uint64_t first, bytes;
};

}  // namespace

uint64_t spike_frames(const SpikeCamera& camera, const std::filesystem::path& file, uint64_t bytes) {
  if (bytes > 0 && bytes % camera.frame_bytes() == 0) return bytes / camera.frame_bytes();
  throw headroom::sdk::Error(
      HR_DATA_CORRUPT, file.string() + ": its " + std::to_string(bytes) +
                           " bytes are no whole number of spike frames of " + shown(camera.size) + " (" +
                           std::to_string(camera.frame_bytes()) +
                           " bytes each); set spike_height and spike_width to the camera's, or copy the file again");
}

StreamPart counted_part(const SpikeCamera& camera, const std::filesystem::path& file, uint64_t bytes) {
  const uint64_t held = spike_frames(camera, file, bytes), wanted = camera.frames;
  if (wanted == 0) return {0, held};
  const std::string told =
      file.string() + " has " + std::to_string(held) + " spike frames; spike_frames = " + std::to_string(wanted);
  if (wanted > held) headroom::sdk::invalid(told + " needs more: lower it, or take the stream out");
  if (camera.middle == 0) return {(held - wanted) / 2, wanted};
  const uint64_t before = wanted / 2, behind = wanted - before;
  if (camera.middle < before || camera.middle + behind > held) {
    headroom::sdk::invalid(told + " around spike_middle = " + std::to_string(camera.middle) +
                           " reach beyond them: lower spike_frames, or set spike_middle from " +
                           std::to_string(before) + " to " + std::to_string(held - behind));
  }
  return {camera.middle - before, wanted};
}

uint64_t counting_bytes(uint64_t bins, const Box& box) { return bins * box.size.height * Columns(box).bytes * 8; }

std::span<const uint8_t> count_spikes(const SpikeCamera& camera, std::span<const std::byte> stream, uint64_t bins,
                                      const Box& box, std::span<uint8_t> room) {
  const Columns columns(box);
  const uint64_t frames = stream.size() / camera.frame_bytes(), row_bytes = camera.size.width / 8;
  const uint64_t wide = columns.bytes * 8, height = box.size.height, width = box.size.width;
  std::ranges::fill(room, uint8_t{0});
  for (uint64_t t = 0; t < frames; ++t) {
    uint8_t* bin = room.data() + std::min(t * bins / frames, bins - 1) * height * wide;
    const std::byte* frame = stream.data() + t * camera.frame_bytes() + columns.first;
    for (uint64_t y = 0; y < height; ++y) {
      const uint64_t row = camera.flip_vertical ? camera.size.height - 1 - (box.top + y) : box.top + y;
      add_bits(frame + row * row_bytes, columns.bytes, bin + y * wide);
    }
  }
  const uint64_t before = box.left - 8 * columns.first;
  for (uint64_t row = 0; row < bins * height && wide != width; ++row)
    std::memmove(room.data() + row * width, room.data() + row * wide + before, width);
  return room.first(bins * height * width);
}

}  // namespace spike_hdf5
