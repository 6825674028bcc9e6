// What a run computes with: its threads, and the processor. Rounding depends on both, beside the build: two processors,
// or two instruction sets of one, add up in different orders.
#pragma once

#include <string>

namespace headroom {

// OpenMP's threads, before tensors take what their stacks need: OpenMP ends the process where it cannot start one.
// Error(does_not_fit). REQUIRES: at::set_num_threads(threads). [control]
void start_compute_threads(int threads);

// "AMD EPYC 7763 64-Core Processor, AVX2": the processor and the instruction set that LibTorch computes with; then,
// where they are held back, that of our kernels and oneDNN's. `root` replaces "/" in tests.
std::string processor_text(const std::string& root = "/");

}  // namespace headroom
