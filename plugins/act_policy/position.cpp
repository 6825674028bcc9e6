#include "position.hpp"

#include <numbers>

namespace headroom {
namespace {

// Sine in even places, cosine in odd ones, along the last axis.
at::Tensor alternate(const at::Tensor& angles) {
  const at::Tensor odd = at::arange(angles.size(-1)).remainder(2).to(at::kBool);
  return at::where(odd, angles.cos(), angles.sin());
}

// [count, per_axis]: the positions 1 ... count of one axis, scaled to a full turn.
at::Tensor axis_waves(int64_t count, int64_t per_axis) {
  const at::Tensor pairs = at::arange(per_axis, at::kFloat).div(2, "floor");
  const at::Tensor periods = at::pow(at::full({}, 10000.0, at::kFloat), pairs * 2 / static_cast<double>(per_axis));
  const at::Tensor places = at::arange(1, count + 1, at::kFloat);
  const at::Tensor turns = places / (places[count - 1] + 1e-6) * (2.0 * std::numbers::pi);
  return alternate(turns.unsqueeze(1) / periods);
}

}  // namespace

at::Tensor sine_map(int64_t height, int64_t width, int64_t per_axis) {
  const at::Tensor rows = axis_waves(height, per_axis).unsqueeze(1).expand({height, width, per_axis});
  const at::Tensor columns = axis_waves(width, per_axis).unsqueeze(0).expand({height, width, per_axis});
  return at::cat({rows, columns}, 2).permute({2, 0, 1}).contiguous();
}

at::Tensor sine_table(int64_t length, int64_t width) {
  const at::Tensor pairs = at::arange(width, at::kDouble).div(2, "floor");
  const at::Tensor periods = at::pow(at::full({}, 10000.0, at::kDouble), pairs * 2 / static_cast<double>(width));
  const at::Tensor angles = at::arange(length, at::kDouble).unsqueeze(1) / periods;
  return alternate(angles).to(at::kFloat).unsqueeze(0);
}

}  // namespace headroom
