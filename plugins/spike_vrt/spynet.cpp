#include "spynet.hpp"

#include <string>

#include "warp.hpp"

namespace headroom {
namespace {

int64_t multiple_of_32(int64_t size) { return (size + 31) / 32 * 32; }

at::Tensor resized(const at::Tensor& x, int64_t height, int64_t width) {
  if (x.size(2) == height && x.size(3) == width) return x;
  return at::upsample_bilinear2d(x, {height, width}, /*align_corners=*/false);
}

// Twice as large in pixels and in displacement, as large as `level`.
at::Tensor doubled(const at::Tensor& flow, const at::Tensor& level) {
  const at::Tensor up =
      at::upsample_bilinear2d(flow, {2 * flow.size(2), 2 * flow.size(3)}, /*align_corners=*/true) * 2.0;
  const int64_t rows = level.size(2) - up.size(2), columns = level.size(3) - up.size(3);
  return rows == 0 && columns == 0 ? up : at::replication_pad2d(up, {0, columns, 0, rows});
}

at::Tensor at_level(const at::Tensor& flow, int64_t height, int64_t width) {
  const at::Tensor scale = at::tensor({static_cast<double>(width) / static_cast<double>(flow.size(3)),
                                       static_cast<double>(height) / static_cast<double>(flow.size(2))},
                                      flow.options().requires_grad(false));
  return resized(flow, height, width) * scale.view({2, 1, 1});
}

}  // namespace

SpyNet::SpyNet() {
  constexpr std::array<int64_t, 6> widths = {8, 32, 64, 32, 16, 2};
  for (std::size_t level = 0; level < refinements_.size(); ++level) {
    for (std::size_t i = 0; i < refinements_[level].size(); ++i) {
      const std::string name = "basic_module." + std::to_string(level) + ".basic_module." + std::to_string(2 * i);
      refinements_[level][i] = add_layer<Conv2d>(*this, name, widths[i], widths[i + 1], 7);
    }
  }
  mean_ = register_buffer("mean", at::tensor({0.485F, 0.456F, 0.406F}).view({1, 3, 1, 1}));
  std_ = register_buffer("std", at::tensor({0.229F, 0.224F, 0.225F}).view({1, 3, 1, 1}));
}

SpyNet::Pyramid SpyNet::pyramid(const at::Tensor& images) const {
  Pyramid levels;
  const at::Tensor scaled = resized(images, multiple_of_32(images.size(2)), multiple_of_32(images.size(3)));
  levels.back() = (scaled - mean_) / std_;
  for (std::size_t i = levels.size() - 1; i > 0; --i) levels[i - 1] = at::avg_pool2d(levels[i], 2, 2);
  return levels;
}

SpyNet::Flow SpyNet::forward(const Pyramid& reference, const Pyramid& support, int64_t height, int64_t width) const {
  Flow flows;
  const at::Tensor& coarsest = reference.front();
  at::Tensor flow = at::zeros({coarsest.size(0), 2, coarsest.size(2) / 2, coarsest.size(3) / 2},
                              coarsest.options().requires_grad(false));
  for (std::size_t level = 0; level < refinements_.size(); ++level) {
    const at::Tensor up = doubled(flow, reference[level]);
    at::Tensor x = at::cat({reference[level], warp(support[level], up, Outside::border), up}, 1);
    for (std::size_t i = 0; i < refinements_[level].size(); ++i) {
      x = refinements_[level][i]->forward(x);
      if (i + 1 < refinements_[level].size()) x = x.relu_();
    }
    flow = x + up;
    const std::size_t scale = refinements_.size() - 1 - level;  // 2^scale times smaller than the images
    if (scale < flows.size()) flows[scale] = at_level(flow, height >> scale, width >> scale);
  }
  return flows;
}

}  // namespace headroom
