// Inert weights: a model declares them because its published checkpoints have them, and computes with none of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "plugins/torch_model.hpp"

namespace headroom {

inline constexpr int64_t least_inert_bytes = int64_t{8} << 20;  // less is not worth a file

// Moves a model's inert weights from memory to a file on a local disk, which only checkpoints read. Their tensors are
// the file's pages: they are read and written as before, the kernel drops them when it needs memory, and U does not
// count them. The file has no name, and is gone with the last tensor. Weights stay as they are where they are not on
// the CPU, are fewer than `least_bytes`, or no disk takes them. Returns what to say of it in the log; "": nothing.
// [control]
std::string move_inert_weights_to_disk(std::span<Parameter> parameters, int64_t least_bytes = least_inert_bytes);

// Where a weight lies in a file: takes its pages out of this process's memory, after they were written to. [control]
void release_pages(const Parameter& parameter);

}  // namespace headroom
