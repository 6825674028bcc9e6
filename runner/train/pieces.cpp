#include "train/pieces.hpp"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/square_kernel.hpp"

namespace headroom {

namespace {

// One norm of all of them, in float64 so that the order of the tensors hardly counts.
double norm_of(const std::vector<at::Tensor>& tensors) {
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors, 2, at::kDouble))).item<double>();
}

constexpr int64_t values_at_once = 1 << 18;

// The sum of sum_of(first, count) over pieces of `count` values. The same for any number of threads: each piece has a
// sum of its own, and these are added in order.
template <class SumOf>
double sum_over_pieces(int64_t count, const SumOf& sum_of) {
  std::vector<double> sums((count + values_at_once - 1) / values_at_once);
  at::parallel_for(0, std::ssize(sums), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * values_at_once;
      sums[i] = sum_of(first, std::min(values_at_once, count - first));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// On a CPU LibTorch would make a float64 copy of a whole tensor for its norm.
double squares_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) {
    const double norm = at::linalg_vector_norm(tensor, 2, std::nullopt, false, at::kDouble).item<double>();
    return norm * norm;
  }
  // A norm does not depend on the order: a dense tensor of any layout is seen as flat without a copy.
  const at::Tensor seen = is_dense(tensor) ? tensor : tensor.contiguous();
  return sum_over_pieces(seen.numel(), [&](int64_t first, int64_t count) {
    return seen.scalar_type() == at::kFloat ? sum_of_squares(seen.const_data_ptr<float>() + first, count)
                                            : sum_of_squares(seen.const_data_ptr<double>() + first, count);
  });
}

// Of what the tensor is once it is divided.
double divide_and_square(const at::Tensor& tensor, double divisor) {
  const bool has_kernel = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
  if (!has_kernel || !is_dense(tensor)) {
    tensor.div_(divisor);
    return squares_of(tensor);
  }
  return sum_over_pieces(tensor.numel(), [&](int64_t first, int64_t count) {
    return tensor.scalar_type() == at::kFloat
               ? divide_and_sum_squares(tensor.mutable_data_ptr<float>() + first, count, divisor)
               : divide_and_sum_squares(tensor.mutable_data_ptr<double>() + first, count, divisor);
  });
}

double norm_on_cpu(const std::vector<at::Tensor>& tensors) {
  double squares = 0.0;
  for (const at::Tensor& tensor : tensors) squares += squares_of(tensor);
  return std::sqrt(squares);
}

double global_norm(const std::vector<at::Tensor>& tensors) {
  return tensors.front().is_cpu() ? norm_on_cpu(tensors) : norm_of(tensors);
}

}  // namespace

std::vector<double> norm_of_each(const std::vector<at::Tensor>& tensors) {
  std::vector<double> norms;
  if (tensors.empty()) return norms;
  if (!tensors.front().is_cpu()) {
    // One answer of the device for all of them.
    const at::Tensor found = at::stack(at::_foreach_norm(tensors, 2, at::kDouble)).cpu();
    norms.assign(found.const_data_ptr<double>(), found.const_data_ptr<double>() + found.numel());
    return norms;
  }
  for (const at::Tensor& tensor : tensors) norms.push_back(std::sqrt(squares_of(tensor)));
  return norms;
}

double divide_gradients(std::span<const at::Tensor> gradients, double divisor) {
  if (gradients.empty()) return 0.0;
  at::NoGradGuard no_grad;
  if (!gradients.front().is_cpu()) {
    const std::vector<at::Tensor> list(gradients.begin(), gradients.end());
    at::_foreach_div_(list, divisor);
    return norm_of(list);
  }
  double squares = 0.0;
  for (const at::Tensor& gradient : gradients) squares += divide_and_square(gradient, divisor);
  return std::sqrt(squares);
}

double clip_gradients(std::span<const at::Tensor> gradients, const Clipping& clipping, std::optional<double> known) {
  if (gradients.empty()) return 0.0;
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> list(gradients.begin(), gradients.end());
  const double before = known ? *known : global_norm(list);
  // What is not finite is left for the caller to see: a bound of the values would hide an infinity.
  if (!std::isfinite(before)) return before;
  double norm = before;
  if (clipping.value > 0) {
    at::_foreach_clamp_min_(list, -clipping.value);
    at::_foreach_clamp_max_(list, clipping.value);
    if (clipping.norm > 0) norm = global_norm(list);
  }
  // 1e-6 as in torch.nn.utils.clip_grad_norm_.
  if (clipping.norm > 0 && norm > clipping.norm) at::_foreach_mul_(list, clipping.norm / (norm + 1e-6));
  return before;
}

}  // namespace headroom
