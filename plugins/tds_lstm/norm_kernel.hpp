// The sum of a row and its residual, normalised over its features (layer normalisation, Ba et al. 2016), forward and
// backward, for several instruction sets (sdk/cpu_kernel.hpp). Torch-free; float32. Rows are contiguous.
#pragma once

#include <cstdint>

namespace headroom {

// Whether the kernels below take rows of so many features.
bool has_norm_kernel(int64_t features);

struct NormShape {
  int64_t rows, features;
};

// Of a row: its mean, and the inverse of its deviation.
struct NormMoments {
  float mean, scale;
};

// sum = y + residual; to = normalised sum * weight + bias. `residual` may be NULL: then `sum` is not written, and y is
// the sum.
struct NormForward {
  const float *y, *residual, *weight, *bias;
  float *sum, *to;
  NormMoments* moments;  // [rows]
  float epsilon;
};
void normalise_rows(const NormShape& shape, const NormForward& rows);

// The gradient of the sum from that of the result, and what the rows add to those of weight and bias.
struct NormBackward {
  const float *sum, *weight, *above;
  const NormMoments* moments;  // as normalise_rows() found them
  float* to_sum;
  float *to_weight, *to_bias;  // [features]
};
void add_norm_gradient(const NormShape& shape, const NormBackward& rows);

}  // namespace headroom
