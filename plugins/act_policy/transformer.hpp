// Encoder and decoder of the policy, batch first. Positions are added to queries and keys in every layer, never to
// values.
#pragma once

#include <memory>
#include <torch/torch.h>
#include <vector>

#include "attention.hpp"

namespace headroom {

struct LayerShape {
  int64_t width, heads, feedforward;
  bool pre_norm;
  Init init;
};

class EncoderLayer : public torch::nn::Module {
 public:
  explicit EncoderLayer(const LayerShape& shape);

  // x [batch, tokens, width]; `position` broadcasts to it. Only the first `rows` tokens of the result are computed.
  at::Tensor forward(const Dropout& dropout, const at::Tensor& x, const at::Tensor& position,
                     const at::Tensor& attended, int64_t rows) const;

 private:
  bool pre_norm_;
  std::shared_ptr<Attention> self_attn_;
  std::shared_ptr<Dense> linear1_, linear2_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
};

// The layers, and a norm behind them where they normalise first.
class Encoder : public torch::nn::Module {
 public:
  Encoder(const LayerShape& shape, int64_t layers);

  at::Tensor forward(const Dropout& dropout, at::Tensor x, const at::Tensor& position,
                     const at::Tensor& attended = {}) const;
  // forward()'s first token: the last layer computes no other.
  at::Tensor first_token(const Dropout& dropout, at::Tensor x, const at::Tensor& position,
                         const at::Tensor& attended) const;
  // Every layer starts as the first: in all its tensors, or in its linear biases alone.
  void copy_first_layer(bool biases_alone) const;

 private:
  at::Tensor run(const Dropout& dropout, at::Tensor x, const at::Tensor& position, const at::Tensor& attended,
                 bool first_token_alone) const;

  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

// What the decoder looks at: the encoder's output, without and with its positions.
struct Memory {
  at::Tensor values, keys;
};

class DecoderLayer : public torch::nn::Module {
 public:
  explicit DecoderLayer(const LayerShape& shape);
  at::Tensor forward(const Dropout& dropout, const at::Tensor& x, const Memory& memory, const at::Tensor& query) const;

 private:
  bool pre_norm_;
  std::shared_ptr<Attention> self_attn_, multihead_attn_;
  std::shared_ptr<Dense> linear1_, linear2_;
  std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
};

class Decoder : public torch::nn::Module {
 public:
  Decoder(const LayerShape& shape, int64_t layers);

  // The normalised output [batch, queries, width] of layer `depth`, counted from 1; later ones are not run. `query`
  // [queries, width] are the positions of the queries, which are zero.
  at::Tensor forward(const Dropout& dropout, const Memory& memory, const at::Tensor& query, int64_t depth) const;
  void copy_first_biases() const;

 private:
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

class Transformer : public torch::nn::Module {
 public:
  Transformer(const LayerShape& shape, int64_t encoder_layers, int64_t decoder_layers);

  // tokens [batch, tokens, width], position [tokens, width] -> [batch, queries, width], as Decoder.
  at::Tensor forward(const Dropout& dropout, const at::Tensor& tokens, const at::Tensor& position,
                     const at::Tensor& query, int64_t depth) const;

 private:
  std::shared_ptr<Encoder> encoder_;
  std::shared_ptr<Decoder> decoder_;
};

}  // namespace headroom
