// Kernels for the CPU at hand: a body is compiled for each of three instruction sets and chosen when it runs.
// Torch-free.
//
//   struct Work { static KERNEL_BODY void run(Arguments...) { ... } };     // what it calls is KERNEL_BODY too
//   run_kernel<Work>(arguments...);
#pragma once

#define KERNEL_BODY inline __attribute__((always_inline))

namespace headroom {

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
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return run_on_avx512<Work>(arguments...);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_on_avx2<Work>(arguments...);
#endif
  Work::run(arguments...);
}

}  // namespace headroom
