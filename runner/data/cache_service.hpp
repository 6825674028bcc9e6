// headroom.cache/1: plugins' blocks in the sample cache, and what a run says of that cache.
#pragma once

#include <cstdint>

#include "headroom/abi.h"

namespace headroom {

const hr_cache& cache_service();

// [any] Byte limit of the sample cache (`data.cache_size`); 0: nothing is kept.
void set_cache_limit(int64_t bytes);

// [any] What goes for blocks that plugins keep in it (`data.cache_policy`); the host's own samples have theirs.
enum class CachePolicy;
void set_plugin_cache_policy(CachePolicy of_plugins);

// [any] Whether a plugin has asked for headroom.cache/1: then the source keeps what it wants kept, and the host
// nothing.
bool plugins_use_cache();

}  // namespace headroom
