// Operations on large tensors that need almost no further memory: piece by piece over the elements; norms of gradients
// and weights; clipping. [compute]
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <torch/torch.h>
#include <tuple>
#include <vector>

namespace headroom {

// Whether the tensor fills its memory without gaps, so that a piece of it can be viewed as a flat tensor.
inline bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

// `count` elements from element `begin` on, in memory order. REQUIRES: is_dense(tensor).
inline at::Tensor piece_at(const at::Tensor& tensor, int64_t begin, int64_t count) {
  return tensor.as_strided({count}, {1}, tensor.storage_offset() + begin);
}

// The number of elements in a piece. On a CPU a piece stays in the cache from one operation to the next; a GPU needs
// larger pieces.
inline int64_t elements_of_a_piece(const at::Device& device) { return device.is_cpu() ? 1 << 17 : 1 << 22; }

// The number of scratch elements that in_pieces() needs for `tensor`.
inline int64_t scratch_elements(const at::Tensor& tensor) {
  return is_dense(tensor) ? std::min(tensor.numel(), elements_of_a_piece(tensor.device())) : tensor.numel();
}

// Calls work(scratch, part, ...) with the same piece of each of `tensors`, piece by piece until the end. All tensors
// have one shape. The scratch that `work` gets is as large as the piece; its content is undefined.
template <class Work, class... Tensors>
void in_pieces(const at::Tensor& scratch, const Work& work, const Tensors&... tensors) {
  const at::Tensor& first = std::get<0>(std::tie(tensors...));
  const int64_t all = first.numel();
  if (!((is_dense(tensors) && tensors.strides() == first.strides()) && ...)) {
    work(scratch.numel() < all ? at::empty_like(first) : scratch.narrow(0, 0, all).view(first.sizes()), tensors...);
    return;
  }
  const int64_t piece = elements_of_a_piece(first.device());
  for (int64_t begin = 0; begin < all; begin += piece) {
    const int64_t count = std::min(piece, all - begin);
    work(scratch.narrow(0, 0, count), piece_at(tensors, begin, count)...);
  }
}

// The L2 norm of each tensor, in float64.
std::vector<double> norm_of_each(const std::vector<at::Tensor>& tensors);

// Bounds on gradients; 0: no bound.
struct Clipping {
  double value = 0.0;  // of each element's magnitude; applied before the norm
  double norm = 0.0;   // global L2 norm, in float64; above it all gradients are scaled down
};

// Returns the norm before clipping. Where the norm is not finite, the gradients stay as they are. `known`: the norm,
// where it was measured already.
double clip_gradients(std::span<const at::Tensor> gradients, const Clipping& clipping,
                      std::optional<double> known = std::nullopt);

// Divides the gradients in place and returns their norm then: the same bits as at::_foreach_div_() and
// clip_gradients() without bounds give, in one pass over memory instead of two. The gradients do not overlap.
double divide_gradients(std::span<const at::Tensor> gradients, double divisor);

}  // namespace headroom
