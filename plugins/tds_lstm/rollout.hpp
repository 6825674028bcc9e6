// From features to joint angles: the decoders, and the pose module that rolls a state out over the window with one of
// them.
#pragma once

#include <memory>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "architecture.hpp"
#include "encoder.hpp"
#include "lstm_rollout.hpp"

namespace headroom {

// What a decoder carries from step to step: (hidden, cell) of each LSTM layer.
using Carry = std::vector<std::pair<at::Tensor, at::Tensor>>;

struct Decoder : torch::nn::Module {
  virtual Carry start(int64_t batch, const at::TensorOptions& like) const = 0;
  virtual at::Tensor step(const at::Tensor& x, Carry& carry) = 0;  // [batch, in] -> [batch, out]
  virtual at::Tensor sequence(const at::Tensor& x) = 0;  // [time, batch, in] -> [time, batch, out]: all steps at once
  virtual const LstmWeights* lstm() const { return nullptr; }  // where roll_out_lstm() does the same
};

std::shared_ptr<Decoder> make_decoder(const DecoderShape& shape);

// Encoder and decoder under the reference's names, `network` and `decoder`.
class PoseNetwork : public torch::nn::Module {
 public:
  explicit PoseNetwork(const Architecture& architecture);

  // emg [batch, window, channels] and the pose at the first predicted sample [batch, joints] -> [batch, window -
  // context, joints]. The state that is fed back is not detached: the gradient runs through the whole roll-out.
  at::Tensor forward(const at::Tensor& emg, const at::Tensor& initial);

 private:
  at::Tensor roll_out(const at::Tensor& features, at::Tensor state);

  Architecture architecture_;
  StateRule rule_;
  Encoder network_;
  std::shared_ptr<Decoder> decoder_;
};

}  // namespace headroom
