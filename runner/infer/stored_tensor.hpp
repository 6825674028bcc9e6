// LibTorch tensors of the tensors in a safetensors file.
#pragma once

#include <string>
#include <torch/torch.h>

#include "record/safetensors.hpp"

namespace headroom {

// A copy, on the CPU.
at::Tensor tensor_of(const TensorBytes& stored);

// Copies `stored`, called `name`, into `target`, which keeps its memory, type and device. Releases the pages of
// `stored` where it lies in a file, so that a file need not be in memory as a whole. Returns the problem; "" where
// there is none. `stored` NULL: the tensor is missing.
std::string copy_stored(const TensorBytes* stored, const std::string& name, at::Tensor& target);

}  // namespace headroom
