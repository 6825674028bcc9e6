// Whether what a plan reads is what libhdf5 reads.
#pragma once

#include "arrays/hdf5_plan.hpp"

namespace headroom {

// Compares single records of `dataset`; `file` is a descriptor of its file. Chunks' offsets are moved behind the user
// block where libhdf5 left it out. False: the plan is not to be used. Under Hdf5Lock.
bool agrees_with_library(hid_t dataset, int file, uint64_t user_block_bytes, ArrayPlan& plan);

}  // namespace headroom
