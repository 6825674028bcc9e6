#include "metrics/confusion.hpp"

#include "memory/ledger.hpp"

namespace headroom {

namespace {

// Of the target's shape.
at::Tensor expanded(at::Tensor mask, const at::Tensor& target) {
  while (mask.dim() < target.dim()) mask = mask.unsqueeze(-1);
  return mask.expand(target.sizes());
}

}  // namespace

ConfusionCells cells_of(const PairTensors& tensors, int64_t classes) {
  const at::NoGradGuard no_grad;
  // Of equal scores argmax() takes the first.
  const at::Tensor predicted = tensors.prediction.argmax(-1), target = tensors.target.to(at::kLong);
  at::Tensor counted = target.ge(0).logical_and_(target.lt(classes));
  if (tensors.mask.defined()) counted.logical_and_(expanded(tensors.mask, target).ne(0));
  // What does not count goes to the first cell, where it adds 0.
  const at::Tensor cell = (target * classes + predicted).masked_fill_(counted.logical_not(), 0);
  return {cell.reshape({-1}), counted.to(at::kLong).reshape({-1})};
}

void Confusion::make_room(int64_t classes, at::Device device) {
  if (matrix_.defined()) return;
  const OwnerScope owner(Owner::metrics);
  matrix_ = at::zeros({classes, classes}, at::TensorOptions(at::kLong).device(device));
}

void Confusion::zero() {
  if (matrix_.defined()) matrix_.zero_();
}

void Confusion::add(const ConfusionCells& cells) {
  const at::NoGradGuard no_grad;
  if (!matrix_.is_cpu()) {
    // Sums of integers: the order in which a GPU adds them does not matter.
    matrix_.view({-1}).scatter_add_(0, cells.cell, cells.counted);
    return;
  }
  // By hand: LibTorch's operator may allocate, and what is added here can no longer be taken back.
  auto* const counts = matrix_.mutable_data_ptr<int64_t>();
  const auto* const cell = cells.cell.const_data_ptr<int64_t>();
  const auto* const counted = cells.counted.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < cells.cell.numel(); ++i) counts[cell[i]] += counted[i];
}

void Confusion::add(const at::Tensor& matrix) {
  const at::NoGradGuard no_grad;
  matrix_.add_(matrix);
}

}  // namespace headroom
