// What MSE, MAE, RMSE and R2 need of a prediction and its target: five float64 numbers a channel, whatever is added.
// A channel is a place on the prediction's last axis; a prediction of one value a sample has one.
#pragma once

#include <functional>
#include <span>
#include <torch/torch.h>

#include "metrics/moment_kernel.hpp"

namespace headroom {

// A prediction, a target of its shape, and a mask that broadcasts over its trailing axes (undefined: all is valid).
struct PairTensors {
  at::Tensor prediction, target, mask;
  int64_t channels() const { return prediction.dim() > 1 ? prediction.size(-1) : 1; }
};

// A part of a micro-batch in float64, small beside its activations however large the outputs are.
struct OutputRows {
  at::Tensor prediction, target;  // [n, channels]
  at::Tensor valid;               // bool [n, channels]
};
// Nothing synchronises.
void for_each_piece(const PairTensors& tensors, const std::function<void(const OutputRows&)>& visit);

// Any split of the same elements into micro-batches gives the same moments, to rounding. Nothing synchronises.
class OutputMoments {
 public:
  // Must come before what is added; does nothing the second time.
  void make_room(int64_t channels, at::Device device);
  void zero();
  void add(const at::Tensor& moments);  // of as many channels; allocates no memory of the device

  const at::Tensor& tensor() const { return moments_; }  // undefined before make_room()

 private:
  at::Tensor moments_;  // float64 [Moment::rows, channels]
  at::Tensor scratch_;
};

at::Tensor moments_of(const PairTensors& tensors);

// metrics.mode = "full": the outputs of an epoch, kept to be measured by the textbook's formulas. A check of the sums
// that are made online; its memory grows with the epoch.
// Copies on the CPU: outputs may lie in a batch's slot.
PairTensors keep(const PairTensors& tensors);

// As OutputMoments has them, by two passes over everything; undefined for nothing.
at::Tensor moments_of(std::span<const PairTensors> kept);

}  // namespace headroom
