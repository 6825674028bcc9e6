#include "train/page_lock.hpp"

#include <cstddef>
#include <dlfcn.h>

namespace headroom {

namespace {

// As cuda_runtime_api.h declares them; looked up, so that a build against LibTorch without CUDA is the same code.
using HostRegister = int (*)(void* memory, size_t bytes, unsigned flags);
using HostUnregister = int (*)(void* memory);
using TakeLastError = int (*)();

constexpr int success = 0;
constexpr unsigned for_every_device = 1;  // cudaHostRegisterPortable

HostRegister host_register = nullptr;
HostUnregister host_unregister = nullptr;
TakeLastError take_last_error = nullptr;

template <class Function>
bool find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

// An error that stays behind would be taken for one of the next kernel's.
bool succeeded(int code) {
  if (code != success) take_last_error();
  return code == success;
}

bool lock(void* memory, size_t bytes) { return succeeded(host_register(memory, bytes, for_every_device)); }
void unlock(void* memory) { succeeded(host_unregister(memory)); }

}  // namespace

std::optional<PageLock> cuda_page_lock() {
  if (!find("cudaHostRegister", host_register) || !find("cudaHostUnregister", host_unregister) ||
      !find("cudaGetLastError", take_last_error))
    return std::nullopt;
  return PageLock{lock, unlock};
}

}  // namespace headroom
