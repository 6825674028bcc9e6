// Kernels for several instruction sets: a body is compiled once for each, and the best that the processor has is chosen
// at run time. Needs no LibTorch.
//
//   struct Work { static HEADROOM_KERNEL_BODY void run(Arguments...) { ... } };
//   sdk::run_kernel<Work>(arguments...);
//
// What `run` calls is HEADROOM_KERNEL_BODY too.
//
// On x86-64 these are AVX-512 (F, BW, DQ, VL), AVX2 with FMA, and what the whole tree is compiled for; elsewhere the
// last alone. Sets differ in rounding, where a compiler contracts a product and a sum: results are equal up to
// rounding.
#pragma once

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#define HEADROOM_KERNEL_BODY inline __attribute__((always_inline))

namespace headroom::sdk {

enum class CpuIsa { baseline, avx2, avx512 };  // each has what those before it have

// The environment variable that limits the instruction set: "baseline", "avx2" or "avx512". LibTorch's own variables
// are ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA.
inline constexpr const char* max_cpu_isa_variable = "HEADROOM_MAX_CPU_ISA";

inline constexpr std::array<std::pair<std::string_view, CpuIsa>, 3> cpu_isa_names = {
    {{"baseline", CpuIsa::baseline}, {"avx2", CpuIsa::avx2}, {"avx512", CpuIsa::avx512}}};

inline std::optional<CpuIsa> cpu_isa_named(std::string_view name) {
  for (const auto& [known, isa] : cpu_isa_names)
    if (known == name) return isa;
  return std::nullopt;
}

// Of this processor and its operating system. [any]
inline CpuIsa best_cpu_isa() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CpuIsa::baseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? CpuIsa::avx512 : CpuIsa::avx2;
#else
  return CpuIsa::baseline;
#endif
}

// The instruction set of kernels in this process: the best available, or a lesser one where the variable says so. An
// unknown name changes nothing; the host refuses it when it starts. [any]
inline CpuIsa cpu_isa() {
  static const CpuIsa chosen = [] {
    const CpuIsa best = best_cpu_isa();
    const char* wanted = std::getenv(max_cpu_isa_variable);
    const std::optional<CpuIsa> most = wanted == nullptr ? std::nullopt : cpu_isa_named(wanted);
    return most && *most < best ? *most : best;
  }();
  return chosen;
}

#if defined(__x86_64__)
template <class Work, class... Arguments>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) void run_on_avx512(Arguments... arguments) {
  Work::run(arguments...);
}
template <class Work, class... Arguments>
__attribute__((target("avx2,fma"))) void run_on_avx2(Arguments... arguments) {
  Work::run(arguments...);
}
#endif

template <class Work, class... Arguments>
void run_kernel(Arguments... arguments) {
#if defined(__x86_64__)
  if (cpu_isa() == CpuIsa::avx512) return run_on_avx512<Work, Arguments...>(arguments...);
  if (cpu_isa() == CpuIsa::avx2) return run_on_avx2<Work, Arguments...>(arguments...);
#endif
  Work::run(arguments...);
}

}  // namespace headroom::sdk
