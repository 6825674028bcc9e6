// The whole roll-out of an LSTM decoder that sees its own state, as one autograd function: back-propagation through
// time (Werbos 1990) by hand, over buffers that are made once, with one matrix product for each weight's gradient.
#pragma once

#include <torch/torch.h>
#include <vector>

namespace headroom {

// What a step's output of the decoder does to the state [batch, joints].
struct StateRule {
  int64_t joints = 0;
  int64_t position_steps = 0;  // vemg2pose: the first half of the output is the state until then, then the second half
                               // is added to it
  bool two_halves = false;     // vemg2pose
  bool adds_always = false;    // the output is added to the state instead of replacing it

  bool adds(int64_t step) const { return two_halves ? step >= position_steps : adds_always; }
  int64_t offset(int64_t step) const { return two_halves && step >= position_steps ? joints : 0; }  // in the output
  at::Tensor next(const at::Tensor& state, const at::Tensor& output, int64_t step) const {
    const at::Tensor change = output.narrow(1, offset(step), joints);
    return adds(step) ? state + change : change;
  }
};

struct LstmWeights {
  std::vector<at::Tensor> layers;  // a layer after the other: weight_ih, weight_hh, bias_ih, bias_hh
  at::Tensor out_weight, out_bias;
  double output_scale = 1.0;
};

inline constexpr double leaky_slope = 0.01;  // of what follows the top layer

// Whether roll_out_lstm() computes with tensors like this one: float32 or float64 on the CPU, without autocast.
bool rolls_out_lstm(const at::Tensor& features);

// features [steps, batch, features] and the state before the first step [batch, joints] -> the states [steps, batch,
// joints]. A step's input is [features, state]. First order only: no gradient of a gradient.
at::Tensor roll_out_lstm(const at::Tensor& features, const at::Tensor& initial, const LstmWeights& weights,
                         const StateRule& rule);

}  // namespace headroom
