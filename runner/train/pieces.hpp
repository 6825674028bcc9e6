// Work on each element of large tensors, piece by piece, so that what it takes beside them stays small. [compute]
#pragma once

#include <algorithm>
#include <torch/torch.h>
#include <tuple>

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

}  // namespace headroom
