// Loops over the rows of sequences, for several instruction sets (sdk/cpu_kernel.hpp): interpolation in time, the loss,
// the metrics. Torch-free; float32. Rows are contiguous; strides count floats.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

// Where a row of the result lies between two rows of the input: (1 - weight) * row + weight * (row + 1 or the last).
struct Between {
  int64_t row;
  float weight;
};

// As torch.nn.functional.interpolate(mode = "linear") over time.
std::vector<Between> positions_between(int64_t from, int64_t to, bool align_corners);

// One sequence [from, width] and one [positions, width].
struct Interpolation {
  const std::vector<Between>* positions;
  int64_t from, width, from_stride, to_stride;
};
void interpolate_rows(const Interpolation& shape, const float* from, float* to);
// Adds the gradient of `from`, given that of `to`.
void add_interpolation_gradient(const Interpolation& shape, const float* above, float* to_from);

// Predictions of one window [samples, joints] and what they should have been; `mask` [samples] says which rows count.
struct Compared {
  int64_t samples, joints;
  const float *prediction, *target;
  const bool* mask;
};

struct LossSums {
  double absolute = 0.0, square = 0.0;
  int64_t rows = 0;  // that count
};
LossSums compare_rows(const Compared& rows);
// to_prediction [samples, joints] = absolute * sign(error) + square * 2 * error, and 0 in rows that do not count.
void loss_gradient(const Compared& rows, float absolute, float square, float* to_prediction);

// Sums of absolute values over all joints, and how many rows they are of.
struct MotionSum {
  double sum = 0.0;
  int64_t rows = 0;
};
struct MetricSums {
  std::vector<double> by_joint;  // |error|
  double square = 0.0;           // of the error
  int64_t rows = 0;
  MotionSum prediction[3];  // first, second, third difference in time
  MotionSum error;          // first difference
};
// A difference counts where all rows that it is made of do. Adds to `sums`; by_joint has `joints` elements.
void add_metrics(const Compared& rows, MetricSums& sums);

}  // namespace headroom
