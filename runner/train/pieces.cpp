#include "train/pieces.hpp"

#include <algorithm>
#include <cmath>

namespace headroom {

namespace {

// One norm of all of them, in float64 so that the order of the tensors hardly counts.
double norm_of(const std::vector<at::Tensor>& tensors) {
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors, 2, at::kDouble))).item<double>();
}

// On a CPU LibTorch makes a float64 copy of a whole tensor for its norm.
void add_squares_in_pieces(const at::Tensor& tensor, int64_t piece, double& squares) {
  const auto add = [&](const at::Tensor& part) {
    const double norm = at::linalg_vector_norm(part, 2, std::nullopt, false, at::kDouble).item<double>();
    squares += norm * norm;
  };
  if (tensor.numel() <= piece) {
    add(tensor);
    return;
  }
  // A norm does not depend on the order: a dense tensor of any layout is seen as flat without a copy.
  const at::Tensor seen = is_dense(tensor) ? tensor : tensor.contiguous();
  for (int64_t begin = 0; begin < seen.numel(); begin += piece)
    add(piece_at(seen, begin, std::min(piece, seen.numel() - begin)));
}

double norm_in_pieces(const std::vector<at::Tensor>& tensors) {
  constexpr int64_t piece = 1 << 17;
  double squares = 0.0;
  for (const at::Tensor& tensor : tensors) add_squares_in_pieces(tensor, piece, squares);
  return std::sqrt(squares);
}

double global_norm(const std::vector<at::Tensor>& tensors) {
  return tensors.front().is_cpu() ? norm_in_pieces(tensors) : norm_of(tensors);
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
  constexpr int64_t piece = (64 << 10) / sizeof(double);
  for (const at::Tensor& tensor : tensors) {
    double squares = 0.0;
    add_squares_in_pieces(tensor, piece, squares);
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

double clip_gradients(std::span<const at::Tensor> gradients, const Clipping& clipping) {
  if (gradients.empty()) return 0.0;
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> list(gradients.begin(), gradients.end());
  const double before = global_norm(list);
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
