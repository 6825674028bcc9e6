// Mean and standard deviation of columns, as the original computes them with torch in float32.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace dual_arm_hdf5 {

struct Statistics {
  std::vector<float> mean, std;
};

// Takes the rows of a [rows, columns] table one after the other.
class ColumnStatistics {
 public:
  ColumnStatistics(uint64_t rows, uint64_t columns);
  void add(std::span<const float> row);

  // REQUIRES that all rows were added. std is unbiased and at least `least_std`; of a single row it is that.
  Statistics finish(float least_std) const;

 private:
  // torch sums a column in four lanes, each by cascade: partial sums of blocks, of blocks of blocks, ...
  static constexpr uint64_t kLanes = 4, kLevels = 4;
  float& partial(uint64_t lane, uint64_t level, uint64_t column) {
    return partial_[(lane * kLevels + level) * columns_ + column];
  }
  void carry(uint64_t lane, uint64_t in_lane);

  uint64_t rows_, columns_, level_bits_, added_ = 0;
  std::vector<float> partial_, rest_;           // rest_: rows behind the last four, in order
  std::vector<double> running_mean_, squares_;  // Welford
};

}  // namespace dual_arm_hdf5
