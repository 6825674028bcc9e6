#include "vrt.hpp"

#include <numeric>
#include <string>

#include "warp.hpp"

namespace headroom {

using namespace sdk::literals;

std::vector<double> VrtShape::drop_path_of(std::size_t i) const {
  const auto first = static_cast<std::ptrdiff_t>(i);
  const int64_t before = std::accumulate(depths.begin(), depths.begin() + first, int64_t{0}),
                all = std::accumulate(depths.begin(), depths.end(), int64_t{0});
  std::vector<double> rates;
  for (int64_t block = before; block < before + depths[i]; ++block)
    rates.push_back(all < 2 ? 0.0 : drop_path_rate * static_cast<double>(block) / static_cast<double>(all - 1));
  return rates;
}

Reconstruction::Reconstruction(const VrtShape& shape, std::size_t index) : index_(index) {
  BlockShape block{
      shape.embed_dims[index], shape.hidden(index), {shape.num_heads[index], shape.window, {}, false}, 0.0};
  if (shape.independent(index)) block.attention.window[0] = 1;
  residual_group_ = add_layer<TmsaGroup>(*this, "residual_group", block, shape.drop_path_of(index));
  linear_ = add_layer<Linear>(*this, "linear", block.width, block.width);
}

at::Tensor Reconstruction::forward(const Pass& pass, const at::Tensor& x) const {
  const uint64_t site = sdk::site("spike_vrt.reconstruction"_site, index_);
  return x + linear_->forward(residual_group_->forward(pass, x, site));
}

Vrt::Vrt(const VrtShape& shape) : shape_(shape) {
  const int64_t first = shape.embed_dims.front(), last = shape.embed_dims.back();
  const std::size_t stages = VrtShape::kStages;
  spynet_ = add_layer<SpyNet>(*this, "spynet");
  conv_first_ = add_layer<FrameConv>(*this, "conv_first", 9 * shape.in_channels, first);
  for (std::size_t i = 0; i < stages; ++i)
    stages_.push_back(add_layer<Stage>(*this, "stage" + std::to_string(i + 1), shape, i));
  reconstruction_norm_ = add_layer<LayerNorm>(*this, "stage8.0.1", shape.embed_dims[stages - 1]);
  reconstruction_linear_ =
      add_layer<Linear>(*this, "stage8.0.2", shape.embed_dims[stages - 1], shape.embed_dims[stages]);
  for (std::size_t i = stages; i < shape.depths.size(); ++i) {
    const std::string name = "stage8." + std::to_string(i - stages + 1);
    reconstructions_.push_back(add_layer<Reconstruction>(*this, name, shape, i));
  }
  norm_ = add_layer<LayerNorm>(*this, "norm", last);
  conv_after_body_ = add_layer<Linear>(*this, "conv_after_body", last, first);
  conv_last_ = add_layer<FrameConv>(*this, "conv_last", first, 3);
}

Flows Vrt::flows(const at::Tensor& frames) const {
  return flows_of(*spynet_, frames.narrow(2, 0, 3), shape_.neighbours());
}

at::Tensor Vrt::with_neighbours(const at::Tensor& frames, const Flows& flows) {
  const int64_t batch = frames.size(0), count = frames.size(1);
  const auto seen = [&](const at::Tensor& from, const at::Tensor& flow) {
    return warp_nearest4(from.flatten(0, 1), flow.flatten(0, 1)).unflatten(0, {batch, count - 1});
  };
  const at::Tensor later = seen(frames.narrow(1, 1, count - 1), flows.backward[0][0]),
                   earlier = seen(frames.narrow(1, 0, count - 1), flows.forward[0][0]);
  const at::Tensor none = at::zeros_like(later.narrow(1, 0, 1));
  return at::cat({frames, at::cat({later, none}, 1), at::cat({none, earlier}, 1)}, 2).permute({0, 1, 3, 4, 2});
}

at::Tensor Vrt::body(const Pass& pass, const at::Tensor& features, const Flows& flows, const Guidance& guidance) const {
  std::vector<at::Tensor> down;
  at::Tensor x = features;
  for (std::size_t i = 0; i < 4; ++i) {
    x = stages_[i]->forward(pass, x, flows);
    if (guidance.fuse) x = guidance.fuse(i, x);
    down.push_back(x);
  }
  for (std::size_t i = 4; i < stages_.size(); ++i)
    x = stages_[i]->forward(pass, i == 4 ? x : x + down[VrtShape::kLevel[i - 1]], flows);
  x = reconstruction_linear_->forward(reconstruction_norm_->forward(x + down[0]));
  for (const auto& reconstruction : reconstructions_) x = reconstruction->forward(pass, x);
  return norm_->forward(x);
}

at::Tensor Vrt::forward(const Pass& pass, const at::Tensor& frames, const Flows& flows,
                        const Guidance& guidance) const {
  at::Tensor first = conv_first_->forward(with_neighbours(frames, flows));
  if (guidance.features.defined()) first = first + guidance.features;
  const at::Tensor features = first + conv_after_body_->forward(body(pass, first, flows, guidance));
  return conv_last_->forward(features).permute({0, 1, 4, 2, 3}) + frames.narrow(2, 0, 3);
}

}  // namespace headroom
