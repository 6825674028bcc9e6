// The hr_host that plugins see: a registry of services by id. Folders above register theirs at start-up (arrays/
// registers arrays, strings and array_writer, data/ files and cache), so that plugins/ needs none of them.
#pragma once

#include <atomic>
#include <string_view>

#include "headroom/abi.h"

namespace headroom {

// The one host of this process. log, rng, cancel and memory (plain accounting) are there from the start.
const hr_host* host();

// The same host as the plugin of that id sees it: its lines in the log and its bytes on the ledger carry the id.
const hr_host* host_for(std::string_view plugin_id);

// [control] Before the first plugin is loaded. `table` lives for ever. Replaces an earlier table of the same id.
void register_service(const char* id, const void* table);

// [control] NULL in the torch-free front. Set by the trainer's main before the first plugin is loaded.
void set_host_torch_tag(const char* tag);

// Set by signal handlers; headroom.cancel/1 reads it.
std::atomic<bool>& cancel_flag();

}  // namespace headroom
