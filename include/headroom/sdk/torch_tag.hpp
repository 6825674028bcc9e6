// What must be equal on both sides of the boundary for at::Tensor to mean the same: LibTorch's version, the string ABI
// and the compiler's ABI.
#pragma once

#include <string>
#include <torch/version.h>

#define HEADROOM_STRINGIFY_(x) #x
#define HEADROOM_STRINGIFY(x) HEADROOM_STRINGIFY_(x)
#define HEADROOM_TORCH_TAG \
  TORCH_VERSION            \
  " | cxx11=" HEADROOM_STRINGIFY(_GLIBCXX_USE_CXX11_ABI) " | gxxabi=" HEADROOM_STRINGIFY(__GXX_ABI_VERSION)
