#include "transformer.hpp"

#include <string>

namespace headroom {
namespace {

using namespace sdk::literals;

// Two linear layers, the same at every token.
at::Tensor feed_forward(const Dropout& dropout, const Dense& in, const Dense& out, const at::Tensor& x) {
  const at::Tensor hidden = dropout.after_relu_(in.forward(x.reshape({-1, x.size(-1)})));
  return out.forward(hidden).view(x.sizes());
}

at::Tensor first(const at::Tensor& x, int64_t rows) { return rows == x.size(1) ? x : x.narrow(1, 0, rows); }

// Copies the parameters of `from` whose names end in `suffix` over those of `to`.
void copy_parameters(const torch::nn::Module& from, const torch::nn::Module& to, const std::string& suffix) {
  const at::NoGradGuard no_grad;
  const auto sources = from.named_parameters();
  for (auto& item : to.named_parameters()) {
    if (item.key().ends_with(suffix)) item.value().copy_(sources[item.key()]);
  }
}

void copy_linear_biases(const torch::nn::Module& from, const torch::nn::Module& to) {
  copy_parameters(from, to, "linear1.bias");
  copy_parameters(from, to, "linear2.bias");
}

// "layers" with "0", "1", ... inside.
template <class Layer>
std::vector<std::shared_ptr<Layer>> stack(torch::nn::Module& owner, const LayerShape& shape, int64_t count) {
  const auto holder = owner.register_module("layers", std::make_shared<torch::nn::Module>());
  std::vector<std::shared_ptr<Layer>> layers;
  for (int64_t i = 0; i < count; ++i)
    layers.push_back(holder->register_module(std::to_string(i), std::make_shared<Layer>(shape)));
  return layers;
}

}  // namespace

EncoderLayer::EncoderLayer(const LayerShape& shape) : pre_norm_(shape.pre_norm) {
  self_attn_ = register_module("self_attn", std::make_shared<Attention>(shape.width, shape.heads, shape.init));
  linear1_ = register_module("linear1", std::make_shared<Dense>(shape.width, shape.feedforward, shape.init));
  linear2_ = register_module("linear2", std::make_shared<Dense>(shape.feedforward, shape.width, shape.init));
  norm1_ = register_module("norm1", std::make_shared<LayerNorm>(shape.width));
  norm2_ = register_module("norm2", std::make_shared<LayerNorm>(shape.width));
}

at::Tensor EncoderLayer::forward(const Dropout& dropout, const at::Tensor& x, const at::Tensor& position,
                                 const at::Tensor& attended, int64_t rows) const {
  const Dropout in_attention = dropout.at("attention"_site), after_attention = dropout.at("dropout1"_site),
                in_feed_forward = dropout.at("dropout"_site), after_feed_forward = dropout.at("dropout2"_site);
  const at::Tensor values = pre_norm_ ? norm1_->forward(x) : x;
  const at::Tensor keys = values + position;
  const at::Tensor mixed = self_attn_->forward(in_attention, first(keys, rows), keys, values, attended);
  at::Tensor y = first(x, rows) + after_attention(mixed);
  if (pre_norm_) {
    return y + after_feed_forward(feed_forward(in_feed_forward, *linear1_, *linear2_, norm2_->forward(y)));
  }
  y = norm1_->forward(y);
  return norm2_->forward(y + after_feed_forward(feed_forward(in_feed_forward, *linear1_, *linear2_, y)));
}

Encoder::Encoder(const LayerShape& shape, int64_t layers) {
  layers_ = stack<EncoderLayer>(*this, shape, layers);
  if (shape.pre_norm) norm_ = register_module("norm", std::make_shared<LayerNorm>(shape.width));
}

at::Tensor Encoder::forward(const Dropout& dropout, at::Tensor x, const at::Tensor& position,
                            const at::Tensor& attended) const {
  return run(dropout, std::move(x), position, attended, /*first_token_alone=*/false);
}

at::Tensor Encoder::first_token(const Dropout& dropout, at::Tensor x, const at::Tensor& position,
                                const at::Tensor& attended) const {
  return run(dropout, std::move(x), position, attended, /*first_token_alone=*/true).squeeze(1);
}

at::Tensor Encoder::run(const Dropout& dropout, at::Tensor x, const at::Tensor& position, const at::Tensor& attended,
                        bool first_token_alone) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int64_t rows = first_token_alone && i + 1 == layers_.size() ? 1 : x.size(1);
    x = layers_[i]->forward(dropout.at(i), x, position, attended, rows);
  }
  return norm_ ? norm_->forward(x) : x;
}

void Encoder::copy_first_layer(bool biases_alone) const {
  for (std::size_t i = 1; i < layers_.size(); ++i) {
    if (biases_alone) {
      copy_linear_biases(*layers_.front(), *layers_[i]);
    } else {
      copy_parameters(*layers_.front(), *layers_[i], "");
    }
  }
}

DecoderLayer::DecoderLayer(const LayerShape& shape) : pre_norm_(shape.pre_norm) {
  self_attn_ = register_module("self_attn", std::make_shared<Attention>(shape.width, shape.heads, shape.init));
  multihead_attn_ =
      register_module("multihead_attn", std::make_shared<Attention>(shape.width, shape.heads, shape.init));
  linear1_ = register_module("linear1", std::make_shared<Dense>(shape.width, shape.feedforward, shape.init));
  linear2_ = register_module("linear2", std::make_shared<Dense>(shape.feedforward, shape.width, shape.init));
  norm1_ = register_module("norm1", std::make_shared<LayerNorm>(shape.width));
  norm2_ = register_module("norm2", std::make_shared<LayerNorm>(shape.width));
  norm3_ = register_module("norm3", std::make_shared<LayerNorm>(shape.width));
}

at::Tensor DecoderLayer::forward(const Dropout& dropout, const at::Tensor& x, const Memory& memory,
                                 const at::Tensor& query) const {
  const Dropout in_self = dropout.at("self_attention"_site), after_self = dropout.at("dropout1"_site),
                in_cross = dropout.at("attention"_site), after_cross = dropout.at("dropout2"_site),
                in_feed_forward = dropout.at("dropout"_site), after_feed_forward = dropout.at("dropout3"_site);
  at::Tensor values = pre_norm_ ? norm1_->forward(x) : x;
  const at::Tensor keys = values + query;
  at::Tensor y = x + after_self(self_attn_->forward(in_self, keys, keys, values));
  if (!pre_norm_) y = norm1_->forward(y);
  values = pre_norm_ ? norm2_->forward(y) : y;
  y = y + after_cross(multihead_attn_->forward(in_cross, values + query, memory.keys, memory.values));
  if (!pre_norm_) y = norm2_->forward(y);
  values = pre_norm_ ? norm3_->forward(y) : y;
  y = y + after_feed_forward(feed_forward(in_feed_forward, *linear1_, *linear2_, values));
  return pre_norm_ ? y : norm3_->forward(y);
}

Decoder::Decoder(const LayerShape& shape, int64_t layers) {
  layers_ = stack<DecoderLayer>(*this, shape, layers);
  norm_ = register_module("norm", std::make_shared<LayerNorm>(shape.width));
}

at::Tensor Decoder::forward(const Dropout& dropout, const Memory& memory, const at::Tensor& query,
                            int64_t depth) const {
  const int64_t batch = memory.values.size(0);
  at::Tensor x = at::zeros({batch, query.size(0), query.size(1)}, memory.values.options().requires_grad(false));
  for (std::size_t i = 0; i < static_cast<std::size_t>(depth); ++i)
    x = layers_[i]->forward(dropout.at(i), x, memory, query);
  return norm_->forward(x);
}

void Decoder::copy_first_biases() const {
  for (std::size_t i = 1; i < layers_.size(); ++i) copy_linear_biases(*layers_.front(), *layers_[i]);
}

Transformer::Transformer(const LayerShape& shape, int64_t encoder_layers, int64_t decoder_layers) {
  encoder_ = register_module("encoder", std::make_shared<Encoder>(shape, encoder_layers));
  decoder_ = register_module("decoder", std::make_shared<Decoder>(shape, decoder_layers));
  encoder_->copy_first_layer(/*biases_alone=*/true);
  decoder_->copy_first_biases();
}

at::Tensor Transformer::forward(const Dropout& dropout, const at::Tensor& tokens, const at::Tensor& position,
                                const at::Tensor& query, int64_t depth) const {
  const at::Tensor memory = encoder_->forward(dropout.at("encoder"_site), tokens, position);
  return decoder_->forward(dropout.at("decoder"_site), {memory, memory + position}, query, depth);
}

}  // namespace headroom
