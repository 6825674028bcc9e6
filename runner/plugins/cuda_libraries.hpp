// LibTorch's CUDA libraries. Programs are not linked with them: they map 600 MB and need NVIDIA's libraries, which a
// run on the CPU can do without. They register LibTorch's CUDA backend when they are loaded.
#pragma once

#include <string>

namespace headroom {

// Loads them, where the machine has NVIDIA's driver and this LibTorch is a build for CUDA. Why no CUDA device can be
// used, or "": at least one can. [control] before anything else asks LibTorch for CUDA: it keeps the first answer.
std::string why_no_cuda();

}  // namespace headroom
