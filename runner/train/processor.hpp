// What rounding depends on beside the build: two processors, or two instruction sets of one, add up in different
// orders.
#pragma once

#include <string>

namespace headroom {

// "AMD EPYC 7763 64-Core Processor, AVX2": the processor and the instruction set that LibTorch computes with; then,
// where they are held back, that of our kernels and oneDNN's. `root` replaces "/" in tests.
std::string processor_text(const std::string& root = "/");

}  // namespace headroom
