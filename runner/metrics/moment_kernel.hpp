// The sums of output_moments.hpp over rows on the CPU, in one pass for what LibTorch would make a float64 tensor for at
// every step of the formula. Without LibTorch, for several instruction sets (sdk/cpu_kernel.hpp).
#pragma once

#include <cstdint>

namespace headroom {

// Rows of the [Moment::rows, channels] sums, over valid elements. The variation is that of the target about its mean.
struct Moment {
  enum : int64_t { count, mean, variation, squared_error, absolute_error, rows };
};

// Rows [channels] one after the other. `valid` tells which elements count: of row r and channel c it is
// valid[r * valid_row_stride + c * valid_channel_stride]; NULL: all.
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

}  // namespace headroom
