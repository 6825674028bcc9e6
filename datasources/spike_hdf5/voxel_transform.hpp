// Spike counts as a network takes them: (log1p(count) - mean) / std, or without the logarithm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace spike_hdf5 {

class VoxelTransform {
 public:
  VoxelTransform(bool log1p, double mean, double std);

  void apply(std::span<const uint8_t> counts, float* to) const;

  // In place. The place of the first value that is no finite number or, to log1p(), no count: nothing from there on is
  // transformed.
  std::optional<std::size_t> apply(std::span<float> values) const;

 private:
  float of(float value) const;

  bool log1p_;
  float mean_, std_;
  std::array<float, 256> of_count_;
};

}  // namespace spike_hdf5
