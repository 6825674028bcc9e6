// (x - mean) / std for every value of a field, channel by channel. It runs over every value that is read, so it is
// vectorised; the result is the same on every instruction set.
#pragma once

#include <span>
#include <vector>

#include "plugins/source.hpp"

namespace headroom {

inline bool is_f32(const Field& field) { return field.dtype.code == kDLFloat && field.dtype.bits == 32; }
inline bool is_f64(const Field& field) { return field.dtype.code == kDLFloat && field.dtype.bits == 64; }

// A field of a batch as an array [outer][channels][inner].
struct FieldView {
  int64_t outer = 1, channels = 1, inner = 1;
};

inline FieldView view_of(const Field& field, int64_t samples) {
  FieldView view{samples, 1, 1};
  for (int axis = 0; axis < static_cast<int>(field.shape.size()); ++axis) {
    const int64_t extent = field.shape[static_cast<size_t>(axis)];
    (axis < field.channel_axis ? view.outer : axis == field.channel_axis ? view.channels : view.inner) *= extent;
  }
  return view;
}

// One value, or a vector of them.
template <class Values>
[[gnu::always_inline]] inline void standardise_values(Values& values, const Values& mean, const Values& inverse_std) {
  values = (values - mean) * inverse_std;
}

// 1 / deviation of each.
std::vector<double> inverse(std::span<const double> deviations);

// In place; computed in float64. `mean` and `inverse_std` have one value per channel. [any]
void standardise(float* at, const FieldView& view, std::span<const double> mean, std::span<const double> inverse_std);
void standardise(double* at, const FieldView& view, std::span<const double> mean, std::span<const double> inverse_std);

}  // namespace headroom
