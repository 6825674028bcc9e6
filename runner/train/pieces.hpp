// Work on large tensors that takes next to no memory beside them: on each element, piece by piece; norms of
// gradients and weights, and clipping by them. [compute]
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <torch/torch.h>
#include <tuple>
#include <vector>

namespace headroom {

// Whether pieces of it can be seen as flat where they lie, whatever its layout.
inline bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

// `count` elements from number `begin` on, in the order of memory. REQUIRES: is_dense(tensor).
inline at::Tensor piece_at(const at::Tensor& tensor, int64_t begin, int64_t count) {
  return tensor.as_strided({count}, {1}, tensor.storage_offset() + begin);
}

// The elements of one piece: on a CPU they stay in its cache from one operation to the next, a GPU wants more at a
// time.
inline int64_t elements_of_a_piece(const at::Device& device) { return device.is_cpu() ? 1 << 17 : 1 << 22; }

// What in_pieces() needs as scratch for `tensor`.
inline int64_t scratch_elements(const at::Tensor& tensor) {
  return is_dense(tensor) ? std::min(tensor.numel(), elements_of_a_piece(tensor.device())) : tensor.numel();
}

// Calls work(scratch, part, ...) with the same piece of each of `tensors`, which have one shape, until it has seen all
// of them. `scratch` comes as large as the parts, and holds anything.
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

// The L2 norm of each, in float64. Takes at most 64 KiB at a time.
std::vector<double> norm_of_each(const std::vector<at::Tensor>& tensors);

// Bounds of gradients; 0: none.
struct Clipping {
  double value = 0.0;  // of each element, both ways; before the norm
  double norm = 0.0;   // global L2 norm, in float64; where it is larger all are scaled
};

// Returns the norm before anything was clipped. Where it is not finite some gradient is not, and all stay as they are.
double clip_gradients(std::span<const at::Tensor> gradients, const Clipping& clipping);

}  // namespace headroom
