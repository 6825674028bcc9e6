#include "statistics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace dual_arm_hdf5 {

ColumnStatistics::ColumnStatistics(uint64_t rows, uint64_t columns)
    : rows_(rows),
      columns_(columns),
      level_bits_(std::max<uint64_t>(
          4, static_cast<uint64_t>(std::bit_width(std::max<uint64_t>(rows / kLanes, 1) - 1)) / kLevels)),
      partial_(kLanes * kLevels * columns),
      running_mean_(columns),
      squares_(columns) {}

void ColumnStatistics::add(std::span<const float> row) {
  const double count = static_cast<double>(added_ + 1);
  for (uint64_t c = 0; c < columns_; ++c) {
    const double value = row[c], off = value - running_mean_[c];
    running_mean_[c] += off / count;
    squares_[c] += off * (value - running_mean_[c]);
  }
  const uint64_t lane = added_ % kLanes, in_lane = added_ / kLanes + 1, lane_rows = rows_ / kLanes;
  ++added_;
  if (in_lane > lane_rows) {
    rest_.insert(rest_.end(), row.begin(), row.end());
    return;
  }
  for (uint64_t c = 0; c < columns_; ++c) partial(lane, 0, c) += row[c];
  if (in_lane % (uint64_t{1} << level_bits_) == 0) carry(lane, in_lane);
}

void ColumnStatistics::carry(uint64_t lane, uint64_t in_lane) {
  const uint64_t block = (uint64_t{1} << level_bits_) - 1;
  for (uint64_t level = 1; level < kLevels; ++level) {
    for (uint64_t c = 0; c < columns_; ++c) {
      partial(lane, level, c) += partial(lane, level - 1, c);
      partial(lane, level - 1, c) = 0.0f;
    }
    if ((in_lane & (block << (level * level_bits_))) != 0) return;
  }
}

Statistics ColumnStatistics::finish(float least_std) const {
  Statistics result{std::vector<float>(columns_), std::vector<float>(columns_)};
  for (uint64_t c = 0; c < columns_; ++c) {
    float sums[kLanes] = {};
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      for (uint64_t level = 0; level < kLevels; ++level)
        sums[lane] += partial_[(lane * kLevels + level) * columns_ + c];
    }
    for (uint64_t i = c; i < rest_.size(); i += columns_) sums[0] += rest_[i];
    const float sum = ((sums[0] + sums[1]) + sums[2]) + sums[3];
    result.mean[c] = sum / static_cast<float>(rows_);
    const double variance = rows_ > 1 ? squares_[c] / static_cast<double>(rows_ - 1) : 0.0;
    result.std[c] = std::max(static_cast<float>(std::sqrt(variance)), least_std);
  }
  return result;
}

}  // namespace dual_arm_hdf5
