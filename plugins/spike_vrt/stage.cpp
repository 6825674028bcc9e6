#include "stage.hpp"

#include <string>

namespace headroom {
namespace {

using namespace sdk::literals;

// Each 2 x 2 pixels become one with four times the channels, the offset to the right slowest; and the inverse.
at::Tensor space_to_depth(const at::Tensor& x) {
  const int64_t n = x.size(0), frames = x.size(1), rows = x.size(2), columns = x.size(3), channels = x.size(4);
  return x.reshape({n, frames, rows / 2, 2, columns / 2, 2, channels})
      .permute({0, 1, 2, 4, 5, 3, 6})
      .reshape({n, frames, rows / 2, columns / 2, 4 * channels});
}

at::Tensor depth_to_space(const at::Tensor& x) {
  const int64_t n = x.size(0), frames = x.size(1), rows = x.size(2), columns = x.size(3), channels = x.size(4);
  return x.reshape({n, frames, rows, columns, 2, 2, channels / 4})
      .permute({0, 1, 2, 5, 3, 4, 6})
      .reshape({n, frames, 2 * rows, 2 * columns, channels / 4});
}

}  // namespace

Stage::Stage(const VrtShape& shape, std::size_t index) : index_(index), level_(VrtShape::kLevel[index]) {
  const int64_t width = shape.embed_dims[index];
  if (index == 0) {
    reshape_norm_ = add_layer<LayerNorm>(*this, "reshape.1", width);
  } else {
    const int64_t before = shape.embed_dims[index - 1];
    const int64_t inputs = level_ > VrtShape::kLevel[index - 1] ? 4 * before : before / 4;
    reshape_norm_ = add_layer<LayerNorm>(*this, "reshape.1", inputs);
    reshape_linear_ = add_layer<Linear>(*this, "reshape.2", inputs, width);
  }
  const std::vector<double> rates = shape.drop_path_of(index);
  const auto mutual = shape.mutual_depth(index);
  BlockShape block{width, shape.hidden(index), {shape.num_heads[index], shape.window, {}, false}, 0.0};
  // Both groups take their rates from the first of the stage on.
  const auto first = [&](int64_t count) { return std::vector<double>(rates.begin(), rates.begin() + count); };
  residual_group2_ = add_layer<TmsaGroup>(*this, "residual_group2", block, first(shape.depths[index] - mutual));
  block.attention.mutual = true;
  block.attention.window[0] = 2;
  residual_group1_ = add_layer<TmsaGroup>(*this, "residual_group1", block, first(mutual));
  linear1_ = add_layer<Linear>(*this, "linear1", width, width);
  linear2_ = add_layer<Linear>(*this, "linear2", width, width);
  const AlignmentShape alignment{shape.neighbours(), shape.deformable_groups,
                                 10.0 / static_cast<double>(int64_t{1} << level_)};
  pa_deform_ = add_layer<Alignment>(*this, "pa_deform", width, alignment);
  pa_fuse_ = add_layer<GatedMlp>(*this, "pa_fuse", 3 * width, 3 * width, width);
}

at::Tensor Stage::reshaped(const at::Tensor& x) const {
  if (index_ == 0) return reshape_norm_->forward(x);
  const bool down = level_ > VrtShape::kLevel[index_ - 1];
  return reshape_linear_->forward(reshape_norm_->forward(down ? space_to_depth(x) : depth_to_space(x)));
}

at::Tensor Stage::forward(const Pass& pass, const at::Tensor& input, const Flows& flows) const {
  const uint64_t site = sdk::site("spike_vrt.stage"_site, index_);
  at::Tensor x = reshaped(input);
  x = x + linear1_->forward(residual_group1_->forward(pass, x, sdk::site(site, 1)));
  x = x + linear2_->forward(residual_group2_->forward(pass, x, sdk::site(site, 2)));
  TensorList inputs = {x};
  for (const SpyNet::Flow& flow : flows.backward) inputs.push_back(flow[level_]);
  for (const SpyNet::Flow& flow : flows.forward) inputs.push_back(flow[level_]);
  const auto warp = [this](const sdk::Call&, TensorSpan given, TensorSpan parameters) {
    const std::size_t steps = given.size() / 2;
    return warp_parallel(given[0], given.subspan(1, steps), given.subspan(1 + steps), parameters, pa_deform_->shape());
  };
  const at::Tensor warped =
      sdk::checkpoint(pass.call, "warping", warp, std::move(inputs), pa_deform_->parameter_list());
  return pa_fuse_->forward(at::cat({x, warped}, 4));
}

}  // namespace headroom
