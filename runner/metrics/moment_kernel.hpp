// Computes the sums of output_moments.hpp over rows on the CPU in one pass. LibTorch would allocate a float64 tensor
// for every operation of the formula. Without LibTorch, for several instruction sets (sdk/cpu_kernel.hpp).
#pragma once

#include <cstdint>

namespace headroom {

// The rows of the sums [Moment::rows, channels], over valid elements. `variation` is the target's sum of squared
// differences from its mean.
struct Moment {
  enum : int64_t { count, mean, variation, squared_error, absolute_error, rows };
};

// Rows of `channels` values, one after the other. `valid`: which elements count; that of row r and channel c is valid[r
// * valid_row_stride + c * valid_channel_stride]. NULL: all.
template <class T>
struct MomentRows {
  int64_t rows, channels;
  const T *prediction, *target;
  const bool* valid;
  int64_t valid_row_stride, valid_channel_stride;
};

// Fills `moments` [Moment::rows, channels]; `scratch` has room for 2 * channels.
void sum_moments(const MomentRows<float>& rows, double* moments, double* scratch);
void sum_moments(const MomentRows<double>& rows, double* moments, double* scratch);

// Adds to `sums` those of other rows; both [Moment::rows, channels].
void add_moments(double* sums, const double* moments, int64_t channels);

}  // namespace headroom
