// The threads and the processor that a run computes with. Rounding depends on both: two processors, or two instruction
// sets of one processor, add up in different orders.
#pragma once

#include <string>

namespace headroom {

// Starts OpenMP's threads. Call it before tensors take the memory that the threads' stacks need: OpenMP ends the
// process where it cannot start a thread. Error(does_not_fit). REQUIRES: at::set_num_threads(threads). [control]
void start_compute_threads(int threads);

// "AMD EPYC 7763 64-Core Processor, AVX2": the processor, and the instruction set that LibTorch uses. Where Headroom's
// kernels and oneDNN are limited to an older one, that is named after it. `root` replaces "/" in tests.
std::string processor_text(const std::string& root = "/");

}  // namespace headroom
