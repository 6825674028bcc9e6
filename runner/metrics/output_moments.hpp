// The sums that MSE, MAE, RMSE and R2 are computed from: five float64 numbers for each channel, however much is added.
// A channel is a place on the prediction's last axis; a prediction of one value for each sample has one channel.
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

// Gives a mask as many axes as the tensor that it masks: appends trailing axes of length 1.
at::Tensor with_trailing_axes(at::Tensor mask, int64_t axes);

// A part of a micro-batch in float64. It is small compared with the activations, however large the outputs are.
struct OutputRows {
  at::Tensor prediction, target;  // [n, channels]
  at::Tensor valid;               // bool [n, channels]
};
// Calls `visit` for all parts in order. Does not synchronise the device.
void for_each_piece(const PairTensors& tensors, const std::function<void(const OutputRows&)>& visit);

// The sums. Any split of the same elements into micro-batches gives the same sums, up to rounding. Does not synchronise
// the device.
class OutputMoments {
 public:
  // Call it before add(); later calls do nothing.
  void make_room(int64_t channels, at::Device device);
  void zero();
  void add(const at::Tensor& moments);  // with as many channels; allocates no device memory

  const at::Tensor& tensor() const { return moments_; }  // undefined before make_room()

 private:
  at::Tensor moments_;  // float64 [Moment::rows, channels]
  at::Tensor scratch_;
};

at::Tensor moments_of(const PairTensors& tensors);

// For metrics.mode = "full", which keeps the outputs of an epoch and applies the textbook formulas: a check of the
// online sums. Its memory grows with the epoch. Returns copies on the CPU, because outputs may share a batch's slot.
PairTensors keep(const PairTensors& tensors);

// The same sums by two passes over everything kept; undefined for an empty list.
at::Tensor moments_of(std::span<const PairTensors> kept);

}  // namespace headroom
