// The services of this process, by id. Folders above register theirs at start-up (arrays/ registers arrays, strings and
// array_writer, data/ files and cache), so that plugins/ needs none of them.
#pragma once

#include <atomic>

#include "headroom/abi.h"

namespace headroom {

// The host as it is passed to a plugin (plugins/session.hpp). log, rng, cancel and memory are there from the start.
// [any]
hr_host native_host();

// [control] Before the first plugin is loaded. `table` lives for ever. Replaces an earlier table of the same id.
void register_service(const char* id, const void* table);

// [control] NULL in the torch-free front. Set by the trainer's main before the first plugin is loaded.
void set_host_torch_tag(const char* tag);

// Set by signal handlers; headroom.cancel/1 reads it.
std::atomic<bool>& cancel_flag();

}  // namespace headroom
