#include "train/kept_outputs.hpp"

#include <limits>

#include "memory/ledger.hpp"

namespace headroom {

namespace {

void for_each_piece(std::span<const PairTensors> kept, const std::function<void(const OutputRows&)>& visit) {
  for (const PairTensors& tensors : kept) for_each_piece(tensors, visit);
}

at::Tensor copy_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  at::Tensor copy = at::empty(tensor.sizes(), tensor.scalar_type());
  copy.copy_(tensor);
  return copy;
}

}  // namespace

PairTensors keep(const PairTensors& tensors) {
  const at::NoGradGuard no_grad;
  const OwnerScope owner(Owner::metrics);
  return {copy_of(tensors.prediction), copy_of(tensors.target), copy_of(tensors.mask)};
}

at::Tensor moments_of(std::span<const PairTensors> kept) {
  if (kept.empty()) return {};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int64_t channels = kept.front().channels();
  at::Tensor moments = at::zeros({Moment::rows, channels}, at::kDouble), sum = at::zeros({channels}, at::kDouble);
  at::Tensor least = at::full({channels}, infinity, at::kDouble), most = -least;
  for_each_piece(kept, [&](const OutputRows& rows) {
    const at::Tensor error = at::where(rows.valid, rows.prediction - rows.target, 0.0);
    moments[Moment::count].add_(rows.valid.sum(0));
    moments[Moment::squared_error].add_(error.square().sum(0));
    moments[Moment::absolute_error].add_(error.abs().sum(0));
    sum.add_(at::where(rows.valid, rows.target, 0.0).sum(0));
    least = at::minimum(least, at::where(rows.valid, rows.target, infinity).amin(0));
    most = at::maximum(most, at::where(rows.valid, rows.target, -infinity).amax(0));
  });
  moments[Moment::mean].copy_(sum / moments[Moment::count]);
  for_each_piece(kept, [&](const OutputRows& rows) {
    const at::Tensor deviation = at::where(rows.valid, rows.target - moments[Moment::mean], 0.0);
    moments[Moment::variation].add_(deviation.square().sum(0));
  });
  moments[Moment::variation].masked_fill_(least.eq(most), 0.0);  // else rounding of the mean would count
  return moments;
}

}  // namespace headroom
