#include "train/compute.hpp"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "error.hpp"
#include "headroom/sdk/cpu_kernel.hpp"
#include "memory/limits.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

// Where the kernel gives no name, as on Arm, the architecture.
std::string model_name(const std::string& root) {
  std::ifstream file(root + "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown processor";
}

}  // namespace

void start_compute_threads(int threads) {
  constexpr int64_t beside_a_stack = 1 << 20;  // its guard pages, thread-local data, and what OpenMP keeps about it
  // LibTorch divides work from GRAIN_SIZE elements on: filling this much takes every thread. It is there before the
  // stacks are tried, so that it does not take their room afterwards.
  at::Tensor shared_out = at::empty({2 * threads * at::internal::GRAIN_SIZE}, at::kByte);
  const auto bytes = static_cast<size_t>(stack_bytes(threads - 1) + (threads - 1) * beside_a_stack);
  if (bytes > 0) {
    // Mapped like stacks and never touched: it only asks whether rlimits leave the address space.
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

std::string processor_text(const std::string& root) {
  std::string text = model_name(root) + ", " + at::get_cpu_capability();
  for (const auto& [name, isa] : sdk::cpu_isa_names)
    if (isa == sdk::cpu_isa() && isa < sdk::best_cpu_isa()) text += ", kernels " + std::string(name);
  // The environment variables by which oneDNN is held to an older instruction set; the second is its former name.
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') text += std::string(", ") + variable + "=" + value;
  }
  return text;
}

}  // namespace headroom
