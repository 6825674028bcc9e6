// What a run computes with: its threads, the processor, and memory that a GPU copies out of by itself. Rounding depends
// on the first two, beside the build: two processors, or two instruction sets of one, add up in different orders.
#pragma once

#include <string>

namespace headroom {

// OpenMP's threads, before tensors take what their stacks need: OpenMP ends the process where it cannot start one.
// Error(does_not_fit). REQUIRES: at::set_num_threads(threads). [control]
void start_compute_threads(int threads);

// "AMD EPYC 7763 64-Core Processor, AVX2": the processor and the instruction set that LibTorch computes with; then,
// where they are held back, that of our kernels and oneDNN's. `root` replaces "/" in tests.
std::string processor_text(const std::string& root = "/");

// data.pin_memory: slots that loaders make from here on are page-locked by the CUDA runtime that LibTorch has brought
// into the process. False where there is none. One that cannot be locked stays as it is. [control]
bool lock_pages_of_batches();

}  // namespace headroom
