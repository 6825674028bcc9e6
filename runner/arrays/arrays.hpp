// arrays/ reads and writes HDF5 files. It knows nothing of samples and batches: those are made in data/.
//
// How a dataset is read:
// 1. libhdf5 is asked about it once, in a child process, because a damaged file may crash libhdf5 (hdf5_child.hpp).
// 2. The answer is a plan (hdf5_plan.hpp): one offset, or a table of chunks with their filters. Before the child sends
//    it, it compares some records read by the plan with what H5Dread returns.
// 3. Threads read the bytes by the plan, any number of them at once (direct_read.hpp). H5Dread would be one at a time:
//    libhdf5 has one lock for the whole process.
// 4. Chunks with filters are decoded (filters.hpp). All datasets of a run keep decoded chunks under one limit
//    (chunk_cache.hpp).
// 5. Elements are converted while they are copied to where they are wanted (record_sink.cpp, convert.hpp).
// A dataset that no plan can describe is read with H5Dread, one thread at a time (hdf5_array.hpp).
//
// What other folders use:
// - plugins: the services below.
// - the host, to read: Hdf5Array, ask_hdf5(), inspect_file(), identify().
// - the host, to write: Hdf5Writer, rewrite_file(), put_in_place().
// - a loader: the hooks of its threads (read_hooks.hpp).
// - a run: ArraySession (array_session.hpp).
// - anybody: Descriptor, absolute_name(), convert.hpp.
// All other headers are for arrays/ alone.
#pragma once

#include "headroom/abi.h"

namespace headroom {

// [control] Registers headroom.arrays/1, strings/1 and array_writer/1 with the host. Before the first source is opened.
void register_array_services();

// The tables behind them: headroom.arrays/1 (HDF5 datasets, box by box), strings/1, and array_writer/1 (HDF5 files that
// plugins write). [any]
const hr_arrays& arrays_service();
const hr_strings& strings_service();
const hr_array_writer& array_writer_service();

}  // namespace headroom
