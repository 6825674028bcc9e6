#include "plugins/cuda_libraries.hpp"

#include <dlfcn.h>
#include <torch/torch.h>

namespace headroom {

namespace {

// Empty: they are loaded.
std::string load() {
  // Without the driver there are no devices.
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr) return "this machine has no driver of NVIDIA's (libcuda.so.1)";
  // Global, as libraries are that a program is linked with: a plugin may call the CUDA runtime.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return "";
  const std::string problem = dlerror();
  return problem.starts_with("libtorch_cuda.so:") ? "this LibTorch is a build for the CPU"
                                                  : "LibTorch's CUDA libraries cannot be loaded: " + problem;
}

}  // namespace

std::string why_no_cuda() {
  static const std::string problem = load();
  if (!problem.empty()) return problem;
  return at::hasCUDA() && torch::cuda::is_available() ? "" : "this LibTorch sees no CUDA device";
}

}  // namespace headroom
