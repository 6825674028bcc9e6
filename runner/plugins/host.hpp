// The services that plugins may ask for, by id; their tables belong to the process. log, memory, rng and cancel are
// here (host.cpp). Folders above register the others at start-up (arrays/: arrays, strings, array_writer; data/: files,
// cache), so plugins/ depends on none of them.
#pragma once

#include <atomic>

#include "headroom/abi.h"

namespace headroom {

// [any] The hr_host without a run; session.hpp makes those that plugins get from it.
hr_host native_host();

// [control] Before the first plugin is loaded. `table` lives for ever. Replaces an earlier table of the same id.
void register_service(const char* id, const void* table);

// [control] NULL in the torch-free front. Set by the trainer's main before the first plugin is loaded.
void set_host_torch_tag(const char* tag);

// [any] Set by signal handlers; headroom.cancel/1 reads it.
std::atomic<bool>& cancel_flag();

}  // namespace headroom
