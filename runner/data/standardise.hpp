// (x - mean) / std per channel, over every value that is read.
#pragma once

#include <span>
#include <vector>

#include "data/field_view.hpp"

namespace headroom {

// One value, or a register of them.
template <class Values>
[[gnu::always_inline]] inline void standardise_values(Values& values, const Values& mean, const Values& inverse_std) {
  values = (values - mean) * inverse_std;
}

std::vector<double> inverse(std::span<const double> deviations);

// In place; float64 inside. Mean and inverse deviation: one per channel.
void standardise(float* at, const FieldView& view, std::span<const double> mean, std::span<const double> inverse_std);
void standardise(double* at, const FieldView& view, std::span<const double> mean, std::span<const double> inverse_std);

}  // namespace headroom
