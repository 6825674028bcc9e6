// Inert weights: a model declares them because its published checkpoints have them, and computes with none of them.
#pragma once

#include <cstdint>
#include <span>

#include "plugins/torch_model.hpp"

namespace headroom {

constexpr int64_t least_inert_bytes = int64_t{8} << 20;  // less is not worth a file

// Moves a model's inert weights from memory to a file on the disk, which only checkpoints read. Their tensors are the
// file's pages: they are read and written as before, the kernel drops them when it needs memory, and U does not count
// them. The file has no name, and is gone with the last tensor. Returns the bytes that were moved; 0 where they are
// fewer than `least_bytes`, not on the CPU, or no disk takes them: then they stay as they are. REQUIRES: their values
// are those that the run begins with. [control]
int64_t move_inert_weights_to_disk(std::span<Parameter> parameters, int64_t least_bytes = least_inert_bytes);

}  // namespace headroom
