#include "norm_kernel.hpp"

#include <cmath>

#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::Vector, sdk::vector_at;

int lanes_for(int64_t features) { return sdk::vector_lanes() == 16 && features % 16 == 0 ? 16 : 8; }

// In pairs: sums of neighbours do not wait for each other.
template <int lanes>
HEADROOM_KERNEL_BODY float across(const Vector<lanes>& vector) {
  float sums[lanes];
  for (int i = 0; i < lanes; ++i) sums[i] = vector[i];
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

template <int lanes>
HEADROOM_KERNEL_BODY NormMoments moments_of(const float* row, int64_t features, float mean, float epsilon) {
  Vector<lanes> squares = {};
  for (int64_t i = 0; i < features; i += lanes) {
    const Vector<lanes> deviation = vector_at<lanes>(row + i) - mean;
    squares += deviation * deviation;
  }
  const float variance = across<lanes>(squares) / static_cast<float>(features);
  return {mean, 1.0F / std::sqrt(variance + epsilon)};
}

template <int lanes>
struct Normalise {
  static HEADROOM_KERNEL_BODY void run(const NormShape* shape, const NormForward* rows) {
    const int64_t features = shape->features;
    for (int64_t r = 0; r < shape->rows; ++r) {
      const float* const y = rows->y + r * features;
      const float* row = y;
      Vector<lanes> total = {};
      if (rows->residual == nullptr) {
        for (int64_t i = 0; i < features; i += lanes) total += vector_at<lanes>(y + i);
      } else {
        const float* const residual = rows->residual + r * features;
        float* const sum = rows->sum + r * features;
        for (int64_t i = 0; i < features; i += lanes) {
          const Vector<lanes> both = vector_at<lanes>(y + i) + vector_at<lanes>(residual + i);
          vector_at<lanes>(sum + i) = both;
          total += both;
        }
        row = sum;
      }
      const float mean = across<lanes>(total) / static_cast<float>(features);
      const NormMoments found = moments_of<lanes>(row, features, mean, rows->epsilon);
      rows->moments[r] = found;
      float* const to = rows->to + r * features;
      for (int64_t i = 0; i < features; i += lanes)
        vector_at<lanes>(to + i) =
            (vector_at<lanes>(row + i) - found.mean) * found.scale * vector_at<lanes>(rows->weight + i) +
            vector_at<lanes>(rows->bias + i);
    }
  }
};

template <int lanes>
struct NormGradient {
  static HEADROOM_KERNEL_BODY void run(const NormShape* shape, const NormBackward* rows) {
    const int64_t features = shape->features;
    for (int64_t r = 0; r < shape->rows; ++r) {
      const float *const row = rows->sum + r * features, *const above = rows->above + r * features;
      const NormMoments found = rows->moments[r];
      Vector<lanes> of_mean = {}, of_scale = {};
      for (int64_t i = 0; i < features; i += lanes) {
        const Vector<lanes> normal = (vector_at<lanes>(row + i) - found.mean) * found.scale;
        const Vector<lanes> given = vector_at<lanes>(above + i), to_normal = given * vector_at<lanes>(rows->weight + i);
        of_mean += to_normal;
        of_scale += to_normal * normal;
        vector_at<lanes>(rows->to_weight + i) += given * normal;
        vector_at<lanes>(rows->to_bias + i) += given;
      }
      const float mean_part = across<lanes>(of_mean) / static_cast<float>(features);
      const float scale_part = across<lanes>(of_scale) / static_cast<float>(features);
      float* const to_sum = rows->to_sum + r * features;
      for (int64_t i = 0; i < features; i += lanes) {
        const Vector<lanes> normal = (vector_at<lanes>(row + i) - found.mean) * found.scale;
        vector_at<lanes>(to_sum + i) = found.scale * (vector_at<lanes>(above + i) * vector_at<lanes>(rows->weight + i) -
                                                      mean_part - normal * scale_part);
      }
    }
  }
};

}  // namespace

bool has_norm_kernel(int64_t features) { return features > 0 && features % 8 == 0; }

void normalise_rows(const NormShape& shape, const NormForward& rows) {
  if (lanes_for(shape.features) == 16) return sdk::run_kernel<Normalise<16>>(&shape, &rows);
  sdk::run_kernel<Normalise<8>>(&shape, &rows);
}

void add_norm_gradient(const NormShape& shape, const NormBackward& rows) {
  if (lanes_for(shape.features) == 16) return sdk::run_kernel<NormGradient<16>>(&shape, &rows);
  sdk::run_kernel<NormGradient<8>>(&shape, &rows);
}

}  // namespace headroom
