// Tensors of a safetensors file as LibTorch's.
#pragma once

#include <string>
#include <torch/torch.h>

#include "record/safetensors.hpp"

namespace headroom {

// A copy, on the CPU.
at::Tensor tensor_of(const TensorBytes& stored);

// Copies `stored`, called `name`, into `target`, which keeps its memory, type and device. Returns what is wrong, ""
// when nothing is. NULL: it is missing.
std::string copy_stored(const TensorBytes* stored, const std::string& name, at::Tensor& target);

}  // namespace headroom
