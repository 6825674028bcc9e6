// What rounding depends on beside the build: two processors, or two instruction sets of one, add up in different
// orders.
#pragma once

#include <string>

namespace headroom {

// "AMD EPYC 7763, AVX2": the processor, the instruction set that LibTorch computes with, and the variables that hold
// others back, as far as they are set. `root` replaces "/" in tests.
std::string processor_text(const std::string& root = "/");

}  // namespace headroom
