#include "plugins/cuda_libraries.hpp"

#include <dlfcn.h>
#include <torch/torch.h>

namespace headroom {

namespace {

// Empty: they are loaded.
std::string load() {
  if (!HEADROOM_LIBTORCH_CUDA) return "this LibTorch is a build for the CPU";
  // Without the driver there are no devices.
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr) return "this machine has no driver of NVIDIA's (libcuda.so.1)";
  // Global, as libraries are that a program is linked with: a plugin may call the CUDA runtime.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return "";
  return std::string("LibTorch's CUDA libraries cannot be loaded: ") + dlerror();
}

}  // namespace

std::string why_no_cuda() {
  static const std::string problem = load();
  if (!problem.empty()) return problem;
  return at::hasCUDA() && torch::cuda::is_available() ? "" : "this LibTorch sees no CUDA device";
}

}  // namespace headroom
