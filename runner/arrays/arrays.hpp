// arrays/: reads and writes HDF5 files, and nothing else; batches are made of their values in data/.
//
// How a dataset is read, and why so. A damaged file may crash libhdf5, so it is asked in a process of its own
// (hdf5_child.hpp), once for a dataset. Its answer is a plan (hdf5_plan.hpp): an offset, or a table of chunks and the
// filters they went through; the child has compared what the plan reads with what H5Dread reads (hdf5_plan.cpp).
// libhdf5 does one thing at a time in a process, so by the plan threads read the bytes themselves, any number of them
// (direct_read.hpp). A chunk is decoded once while there is room for it, in all files together (chunk_cache.hpp), and
// elements are converted on their way to where they are wanted (record_sink.hpp, convert.hpp). What no plan describes
// is read with H5Dread, one thread at a time (hdf5_array.hpp).
//
// From outside: plugins come in through the services that are registered here. The host uses, of files that are there,
// Hdf5Array, ask_hdf5(), inspect_file() and identify(); of files in the making Hdf5Writer, rewrite_file() and
// put_in_place(). A loader listens to pauses (read_hooks.hpp) and shares large reads. A run makes
// an ArraySession (array_session.hpp): what is kept decoded, where bytes come from, how what is read is stored.
// Descriptor, absolute_name() and convert.hpp are anybody's. All else is arrays/'s own.
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
