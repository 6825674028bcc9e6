#include "train/threads.hpp"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <string>
#include <sys/mman.h>

#include "error.hpp"
#include "memory/limits.hpp"
#include "memory/readable.hpp"

namespace headroom {

void start_compute_threads(int threads) {
  constexpr int64_t beside_a_stack = 1 << 20;  // its guard pages, thread-local data, and what OpenMP keeps about it
  at::Tensor shared_out = at::empty({2 * threads * at::internal::GRAIN_SIZE}, at::kByte);
  const auto bytes = static_cast<size_t>(stack_bytes(threads - 1) + (threads - 1) * beside_a_stack);
  if (bytes > 0) {
    void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
      throw Error(Exit::does_not_fit, "memory",
                  "no room for the stacks of " + std::to_string(threads) + " compute threads, " +
                      size_text(static_cast<int64_t>(bytes)) +
                      ": lower experiment.threads, or raise `ulimit -d` or `ulimit -v`");
    }
    munmap(stacks, bytes);
  }
  shared_out.fill_(0);
}

}  // namespace headroom
