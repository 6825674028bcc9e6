// The time-depth-separable convolution (Hannun et al. 2019) on sequences [time, features], forward and backward, for
// several instruction sets (sdk/cpu_kernel.hpp). Torch-free; float32.
//
// A feature is (channel, place): feature = channel * width + place. Every place has the same convolution over time:
//   y[t, o, p] = bias[o] + sum over c, k of weight[o, c, k] * x[t + k, c, p]
// A vector register holds neighbouring features; with fewer places than lanes it holds several output channels, and
// the input is repeated for each of them.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

struct TdsShape {
  int64_t channels, width, kernel;

  int64_t features() const { return channels * width; }
  int64_t weights() const { return channels * channels * kernel; }
};

// Whether the kernels below compute this shape with full registers.
bool has_tds_kernel(const TdsShape& shape);

// Weights as the kernels read them.
class TdsWeights {
 public:
  // `weight` is [out channel, in channel, kernel]; `bias` [channels] or NULL.
  static TdsWeights forward(const TdsShape& shape, const float* weight, const float* bias);
  // Of the convolution that turns the gradient of y into that of x, over y with kernel - 1 zeros at both ends.
  static TdsWeights backward(const TdsShape& shape, const float* weight);

  TdsShape shape;
  std::vector<float> taps;  // [in channel, kernel, features], or [in channel, kernel, out channel] where width >= lanes
  std::vector<float> bias;  // [features]
};

// Floats that one call of the functions below needs as scratch, for `time` steps of the longer sequence.
int64_t tds_scratch_size(const TdsShape& shape, int64_t time);

// x [time, features], taken as if `padding` zeros stood at both ends -> y [time + 2 * padding - kernel + 1, features].
void convolve_tds(const TdsWeights& weights, const float* x, int64_t time, int64_t padding, float* scratch, float* y);

// Adds to `sums` [in channel, kernel, features] of one sample x [time, features], to_y [time - kernel + 1, features].
void add_tds_weight_gradient(const TdsShape& shape, const float* x, int64_t time, const float* to_y, float* scratch,
                             float* sums);

// The gradient of weight [out channel, in channel, kernel] from those sums.
void finish_tds_weight_gradient(const TdsShape& shape, const float* sums, float* to_weight);

}  // namespace headroom
