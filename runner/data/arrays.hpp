// data/: from a source's samples to batches in memory. Front doors: register_data_services() gives plugins HDF5 and
// files, divide() makes the splits, Order says which sample comes when, Loader delivers batches, Normalizer
// standardises them.
#pragma once

#include <cstdint>

namespace headroom {

// [control] Registers headroom.arrays/1, strings/1, files/1, array_writer/1 and cache/1 with the host. Before the first
// source is opened.
void register_data_services();

// [any] Bytes of decoded chunks that all datasets together keep (`data.chunk_cache_size`); 32 MiB unless told.
void set_chunk_cache_limit(int64_t bytes);

// [control] Whether files that are opened from here on are read through mappings where their bytes are in the page
// cache (`data.memory_map`); not, unless told.
void map_files(bool wanted);

// [any] Byte limit of the sample cache (`data.cache_size`); 0: nothing is kept.
void set_cache_limit(int64_t bytes);

// [any] What goes for blocks that plugins keep in it (`data.cache_policy`); the host's own samples have theirs.
enum class CachePolicy;
void set_plugin_cache_policy(CachePolicy of_plugins);

// [any] Whether a plugin has asked for headroom.cache/1: then the source keeps what it wants kept, and the host
// nothing.
bool plugins_use_cache();

}  // namespace headroom
