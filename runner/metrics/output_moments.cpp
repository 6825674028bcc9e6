#include "metrics/output_moments.hpp"

#include <ATen/Parallel.h>
#include <algorithm>
#include <limits>
#include <vector>

#include "memory/ledger.hpp"

namespace headroom {

namespace {

constexpr int64_t piece_elements = int64_t{1} << 20;  // 8 MB a float64 tensor
// Of prediction and target each: 256 KiB together in float32.
constexpr int64_t kernel_elements = int64_t{1} << 15;
// What threads sum at once: so many pieces, or fewer where the sums of so many channels are large.
constexpr int64_t most_pieces = 16, sums_bytes = int64_t{1} << 20;

// As rows beside those of the prediction: [n, channels] or, where all channels share it, [n, 1].
at::Tensor mask_rows(const at::Tensor& mask, const at::Tensor& prediction) {
  if (!mask.defined()) return mask;
  const at::Tensor whole = with_trailing_axes(mask, prediction.dim());
  std::vector<int64_t> sizes = prediction.sizes().vec();
  if (sizes.size() > 1) sizes.back() = whole.size(-1);
  return whole.expand(sizes).reshape({-1, sizes.size() > 1 ? sizes.back() : 1});
}

// The moments of one piece by LibTorch's operators, for what has no kernel: other types, and GPUs.
at::Tensor moments_of_rows(const OutputRows& rows) {
  const at::Tensor error = at::where(rows.valid, rows.prediction - rows.target, 0.0);
  const at::Tensor n = rows.valid.sum(0, /*keepdim=*/false, at::kDouble);
  // From a value of the channel itself, so that a target that never changes has a variation of exactly zero.
  const at::Tensor largest = at::where(rows.valid, rows.target, -std::numeric_limits<double>::infinity()).amax(0);
  const at::Tensor origin = at::where(n > 0, largest, 0.0);
  const at::Tensor offset = at::where(rows.valid, rows.target - origin, 0.0);
  const at::Tensor shift = offset.sum(0) / n.clamp_min(1.0);
  const at::Tensor deviation = at::where(rows.valid, offset - shift, 0.0);
  return at::stack({n, origin + shift, deviation.square().sum(0), error.square().sum(0), error.abs().sum(0)});
}

bool has_kernel(const PairTensors& tensors) {
  const at::ScalarType type = tensors.prediction.scalar_type();
  return tensors.prediction.is_cpu() && tensors.target.is_cpu() && (type == at::kFloat || type == at::kDouble) &&
         tensors.target.scalar_type() == type;
}

// Rows [n, channels] of one type, in memory as the kernel takes them, and their mask in bool or undefined.
struct ContiguousRows {
  at::Tensor prediction, target, valid;
};

template <class T>
MomentRows<T> some_of(const ContiguousRows& all, int64_t first, int64_t count) {
  const int64_t channels = all.prediction.size(1);
  MomentRows<T> rows{count,
                     channels,
                     all.prediction.const_data_ptr<T>() + first * channels,
                     all.target.const_data_ptr<T>() + first * channels,
                     nullptr,
                     0,
                     0};
  if (!all.valid.defined()) return rows;
  rows.valid = all.valid.const_data_ptr<bool>() + first * all.valid.stride(0);
  rows.valid_row_stride = all.valid.stride(0);
  // 0: one value of the mask holds for all channels of its row.
  rows.valid_channel_stride = all.valid.size(1) == channels && channels > 1 ? all.valid.stride(1) : 0;
  return rows;
}

// In pieces of `length` rows: the second of the kernel's two passes over one finds it in the processor's cache. They
// are added in their order, so that sums do not depend on the number of threads.
template <class T>
void add_by_kernel(const ContiguousRows& all, int64_t length, OutputMoments& sums) {
  const int64_t channels = all.prediction.size(1), rows = all.prediction.size(0), pieces = (rows + length - 1) / length;
  const int64_t of_piece = Moment::rows * channels, with_scratch = of_piece + 2 * channels;
  std::vector<double> found(static_cast<size_t>(pieces * with_scratch));
  at::parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      double* const moments = found.data() + piece * with_scratch;
      const int64_t first = piece * length;
      sum_moments(some_of<T>(all, first, std::min(length, rows - first)), moments, moments + of_piece);
    }
  });
  for (int64_t piece = 0; piece < pieces; ++piece)
    sums.add(at::from_blob(found.data() + piece * with_scratch, {Moment::rows, channels}, at::kDouble));
}

void add_by_kernel(const PairTensors& tensors, OutputMoments& sums) {
  const at::NoGradGuard no_grad;
  const int64_t channels = tensors.channels(), length = std::max<int64_t>(1, kernel_elements / channels);
  const auto of_piece = static_cast<int64_t>(sizeof(double)) * (Moment::rows + 2) * channels;
  const int64_t at_once = length * std::clamp<int64_t>(sums_bytes / of_piece, 1, most_pieces);
  const at::Tensor predictions = tensors.prediction.reshape({-1, channels}),
                   targets = tensors.target.reshape({-1, channels});
  at::Tensor valid = mask_rows(tensors.mask, tensors.prediction);
  if (valid.defined() && valid.scalar_type() != at::kBool) valid = valid.ne(0);
  for (int64_t first = 0; first < predictions.size(0); first += at_once) {
    const int64_t count = std::min(at_once, predictions.size(0) - first);
    const ContiguousRows rows{predictions.narrow(0, first, count).contiguous(),
                              targets.narrow(0, first, count).contiguous(),
                              valid.defined() ? valid.narrow(0, first, count) : valid};
    AT_DISPATCH_FLOATING_TYPES(predictions.scalar_type(), "sum_moments",
                               [&] { add_by_kernel<scalar_t>(rows, length, sums); });
  }
}

void for_each_piece(std::span<const PairTensors> kept, const std::function<void(const OutputRows&)>& visit) {
  for (const PairTensors& tensors : kept) for_each_piece(tensors, visit);
}

at::Tensor copy_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  // On the CPU whatever the device, and no view of a larger tensor that would stay alive with it.
  at::Tensor copy = at::empty(tensor.sizes(), tensor.scalar_type());
  copy.copy_(tensor);
  return copy;
}

}  // namespace

at::Tensor with_trailing_axes(at::Tensor mask, int64_t axes) {
  while (mask.dim() < axes) mask = mask.unsqueeze(-1);
  return mask;
}

void for_each_piece(const PairTensors& tensors, const std::function<void(const OutputRows&)>& visit) {
  if (tensors.prediction.numel() == 0) return;
  const at::NoGradGuard no_grad;
  const int64_t channels = tensors.channels();
  const at::Tensor predictions = tensors.prediction.reshape({-1, channels});
  const at::Tensor targets = tensors.target.reshape({-1, channels});
  const at::Tensor valid = mask_rows(tensors.mask, tensors.prediction);
  const at::Tensor all = at::ones({1, 1}, predictions.options().dtype(at::kBool));
  const int64_t length = std::max<int64_t>(1, piece_elements / channels);
  for (int64_t first = 0; first < predictions.size(0); first += length) {
    const int64_t rows = std::min(length, predictions.size(0) - first);
    const at::Tensor here = valid.defined() ? valid.narrow(0, first, rows).ne(0) : all;
    visit({predictions.narrow(0, first, rows).to(at::kDouble), targets.narrow(0, first, rows).to(at::kDouble),
           here.expand({rows, channels})});
  }
}

void OutputMoments::make_room(int64_t channels, at::Device device) {
  if (moments_.defined()) return;
  const OwnerScope owner(Owner::metrics);
  const auto options = at::TensorOptions(at::kDouble).device(device);
  scratch_ = at::empty({3, channels}, options);
  moments_ = at::zeros({Moment::rows, channels}, options);
}

void OutputMoments::zero() {
  if (moments_.defined()) moments_.zero_();
}

// In place: what a window measured is added after its optimizer step, where running out of memory could not be undone.
void OutputMoments::add(const at::Tensor& moments) {
  if (moments_.is_cpu() && moments.is_cpu())
    return add_moments(moments_.mutable_data_ptr<double>(), moments.const_data_ptr<double>(), moments.size(1));
  // The same by LibTorch's operators.
  const at::NoGradGuard no_grad;
  at::Tensor n = moments_[Moment::count], mean = moments_[Moment::mean], variation = moments_[Moment::variation];
  at::Tensor total = scratch_[0], share = scratch_[1], delta = scratch_[2];
  at::add_out(total, n, moments[Moment::count]);
  // share = count of `moments` / both counts; where both are 0 it is 0 / 1.
  at::clamp_min_out(share, total, 1.0);
  at::div_out(share, moments[Moment::count], share);
  at::sub_out(delta, moments[Moment::mean], mean);
  mean.addcmul_(delta, share);
  variation.add_(moments[Moment::variation]).add_(delta.mul_(delta).mul_(n).mul_(share));
  n.copy_(total);
  moments_[Moment::squared_error].add_(moments[Moment::squared_error]);
  moments_[Moment::absolute_error].add_(moments[Moment::absolute_error]);
}

at::Tensor moments_of(const PairTensors& tensors) {
  OutputMoments all;
  all.make_room(tensors.channels(), tensors.prediction.device());
  if (has_kernel(tensors)) {
    add_by_kernel(tensors, all);
  } else {
    for_each_piece(tensors, [&](const OutputRows& rows) { all.add(moments_of_rows(rows)); });
  }
  return all.tensor();
}

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
