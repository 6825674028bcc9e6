#include "tmsa.hpp"

#include <string>

namespace headroom {

using namespace sdk::literals;

GatedMlp::GatedMlp(int64_t in, int64_t hidden, int64_t out) {
  fc11_ = add_layer<Linear>(*this, "fc11", in, hidden);
  fc12_ = add_layer<Linear>(*this, "fc12", in, hidden);
  fc2_ = add_layer<Linear>(*this, "fc2", hidden, out);
}

TensorList GatedMlp::parameter_list() const {
  return {fc11_->weight, fc11_->bias, fc12_->weight, fc12_->bias, fc2_->weight, fc2_->bias};
}

Tmsa::Tmsa(const BlockShape& shape) : shape_(shape) {
  const int64_t width = shape.width;
  const auto [frames, rows, columns] = shape.attention.window;
  norm1_ = add_layer<LayerNorm>(*this, "norm1", width);
  const auto attention = register_module("attn", std::make_shared<Names>());
  relative_position_bias_table_ = attention->register_parameter(
      "relative_position_bias_table",
      at::empty({(2 * frames - 1) * (2 * rows - 1) * (2 * columns - 1), shape.attention.heads}));
  {
    const at::NoGradGuard no_grad;
    // Cut off at +-2, which is 100 standard deviations away.
    torch::nn::init::normal_(relative_position_bias_table_, 0.0, 0.02).clamp_(-2.0, 2.0);
  }
  qkv_self_ = add_layer<Linear>(*attention, "qkv_self", width, 3 * width);
  proj_ = add_layer<Linear>(*attention, "proj", shape.attention.mutual ? 2 * width : width, width);
  if (shape.attention.mutual) qkv_mut_ = add_layer<Linear>(*attention, "qkv_mut", width, 3 * width);
  norm2_ = add_layer<LayerNorm>(*this, "norm2", width);
  mlp_ = add_layer<GatedMlp>(*this, "mlp", width, shape.hidden, width);
}

TensorList Tmsa::attention_parameters() const {
  TensorList list = {norm1_->weight, norm1_->bias, relative_position_bias_table_, qkv_self_->weight, qkv_self_->bias,
                     proj_->weight,  proj_->bias};
  if (qkv_mut_ != nullptr) list.insert(list.end(), {qkv_mut_->weight, qkv_mut_->bias});
  return list;
}

TensorList Tmsa::mlp_parameters() const {
  TensorList list = {norm2_->weight, norm2_->bias};
  for (const at::Tensor& parameter : mlp_->parameter_list()) list.push_back(parameter);
  return list;
}

at::Tensor Tmsa::forward(const Pass& pass, const at::Tensor& x, uint64_t site) const {
  const auto attention = [&shape = shape_.attention, &tables = pass.tables](const sdk::Call&, TensorSpan inputs,
                                                                            TensorSpan parameters) {
    return attention_branch(inputs[0], parameters, shape, tables);
  };
  const auto mlp = [](const sdk::Call&, TensorSpan inputs, TensorSpan parameters) {
    return mlp_branch(inputs[0], parameters);
  };
  const at::Tensor attended = sdk::checkpoint(pass.call, "attention", attention, {x}, attention_parameters());
  const at::Tensor y = x + sdk::drop_path(pass.call, sdk::site(site, "attention"_site), attended, shape_.drop_path);
  const at::Tensor mixed = sdk::checkpoint(pass.call, "mlp", mlp, {y}, mlp_parameters());
  return y + sdk::drop_path(pass.call, sdk::site(site, "mlp"_site), mixed, shape_.drop_path);
}

TmsaGroup::TmsaGroup(const BlockShape& shape, const std::vector<double>& drop_path) {
  const auto holder = register_module("blocks", std::make_shared<Names>());
  for (std::size_t i = 0; i < drop_path.size(); ++i) {
    BlockShape block = shape;
    block.drop_path = drop_path[i];
    if (i % 2 == 1) {
      const auto [frames, rows, columns] = shape.attention.window;
      block.attention.shift = {frames / 2, rows / 2, columns / 2};
    }
    blocks_.push_back(add_layer<Tmsa>(*holder, std::to_string(i), block));
  }
}

at::Tensor TmsaGroup::forward(const Pass& pass, at::Tensor x, uint64_t site) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i]->forward(pass, x, sdk::site(site, i));
  return x;
}

}  // namespace headroom
