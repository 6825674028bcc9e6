#include "voxel_transform.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spike_hdf5 {

namespace {

using Floats = float __attribute__((vector_size(16)));
using Whole = int32_t __attribute__((vector_size(16)));
constexpr std::size_t block = 256;  // values

// The values as whole numbers of [0, 255], where all of them are.
bool as_counts(const float* values, int32_t* counts) {
  constexpr std::size_t lanes = 4;
  Whole odd{};
  for (std::size_t i = 0; i < block; i += lanes) {
    Floats value;
    std::memcpy(&value, values + i, sizeof value);
    const Whole count = __builtin_convertvector(value, Whole);
    odd |= (__builtin_convertvector(count, Floats) != value) | (count & ~255);
    std::memcpy(counts + i, &count, sizeof count);
  }
  return (odd[0] | odd[1] | odd[2] | odd[3]) == 0;
}

}  // namespace

VoxelTransform::VoxelTransform(bool log1p, double mean, double std)
    : log1p_(log1p), mean_(static_cast<float>(mean)), std_(static_cast<float>(std)) {
  for (std::size_t count = 0; count < of_count_.size(); ++count) of_count_[count] = of(static_cast<float>(count));
}

float VoxelTransform::of(float value) const { return ((log1p_ ? std::log1p(value) : value) - mean_) / std_; }

void VoxelTransform::apply(std::span<const uint8_t> counts, float* to) const {
  for (std::size_t i = 0; i < counts.size(); ++i) to[i] = of_count_[counts[i]];
}

// What a file stores are counts nearly always: they are looked up, log1p() takes ten times as long.
std::optional<std::size_t> VoxelTransform::apply(std::span<float> values) const {
  std::size_t at = 0;
  int32_t counts[block];
  while (at < values.size()) {
    float* part = values.data() + at;
    if (values.size() - at >= block && as_counts(part, counts)) {
      for (std::size_t i = 0; i < block; ++i) part[i] = of_count_[static_cast<std::size_t>(counts[i])];
      at += block;
      continue;
    }
    const std::size_t end = std::min(values.size(), at + block);
    for (; at < end; ++at) {
      if (!std::isfinite(values[at]) || (log1p_ && values[at] < 0.0f)) return at;
      values[at] = of(values[at]);
    }
  }
  return std::nullopt;
}

}  // namespace spike_hdf5
