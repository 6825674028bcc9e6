#include "warp.hpp"

#include <algorithm>

namespace headroom {
namespace {

constexpr int64_t kBilinear = 0, kNearest = 1, kZeros = 0, kBorder = 1;

struct Places {
  at::Tensor x, y;  // [n, y, x], in pixels
};

Places places(const at::Tensor& flow) {
  const auto options = flow.options().requires_grad(false);
  return {flow.select(1, 0) + at::arange(flow.size(3), options),
          flow.select(1, 1) + at::arange(flow.size(2), options).unsqueeze(1)};
}

// Pixels to [-1, 1], the first and last pixel's middle.
at::Tensor normalised(const at::Tensor& place, int64_t size) {
  return place * 2.0 / static_cast<double>(std::max<int64_t>(size - 1, 1)) - 1.0;
}

at::Tensor sample(const at::Tensor& x, const at::Tensor& at_x, const at::Tensor& at_y, int64_t mode, int64_t outside) {
  const at::Tensor grid = at::stack({normalised(at_x, x.size(3)), normalised(at_y, x.size(2))}, 3);
  return at::grid_sampler_2d(x.to(grid.scalar_type()), grid, mode, outside, /*align_corners=*/true);
}

}  // namespace

at::Tensor warp(const at::Tensor& x, const at::Tensor& flow, Outside outside) {
  const Places to = places(flow);
  return sample(x, to.x, to.y, kBilinear, outside == Outside::border ? kBorder : kZeros);
}

at::Tensor warp_nearest4(const at::Tensor& x, const at::Tensor& flow) {
  const Places to = places(flow.detach());
  const at::Tensor left = to.x.floor(), right = to.x.ceil(), top = to.y.floor(), bottom = to.y.ceil();
  return at::cat({sample(x, left, top, kNearest, kZeros), sample(x, left, bottom, kNearest, kZeros),
                  sample(x, right, top, kNearest, kZeros), sample(x, right, bottom, kNearest, kZeros)},
                 1);
}

}  // namespace headroom
