// What a run reports about reading. About its loaders: where their time went and whether the model had to wait for
// them. About the sample cache: before the run what it can do for it, and at the end of each epoch what it did.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "arrays/chunk_cache.hpp"
#include "config/experiment.hpp"
#include "data/loader.hpp"
#include "data/order.hpp"
#include "data/sample_cache.hpp"

namespace headroom {

// For the start of a run: a warning where data.num_workers is above both half of `processors`, which the run may use,
// and the default; else "".
std::string workers_line(const DataSection& data, int processors);

// data.loader of summary.json: batches, seconds by stage, hits and misses of the chunk cache.
nlohmann::json loader_json(const LoaderTimes& times, const ChunkCache::Statistics& chunks, const DataSection& data);

// For the end of a run: "the loader kept up: the model waited 1.2 % of the time"; or that the loader is the bottleneck,
// in which stage, and which setting would help. `seconds` is the run's duration. "" for a run without batches.
std::string loader_line(const LoaderTimes& times, const ChunkCache::Statistics& chunks, double seconds,
                        const DataSection& data, int processors);

// "cache: 374 items, 49876 / 51200 MB, 82.45 % hits (8245 hits, 1755 misses), 12 evictions"; MB are 2^20, as in the
// guides.
std::string cache_line(const SampleCache::Statistics& statistics);
nlohmann::json cache_json(const SampleCache::Statistics& statistics);

// The share of reads that hit a warm cache, where every sample is read once an epoch and the share `kept` of them fits.
// `planned`: kept. `lru`: kept + (1 - kept) ln(1 - kept) in a global shuffle, and 0 where every epoch has the same
// order.
double expected_hit_rate(CachePolicy policy, bool shuffled, double kept);

struct CacheSetting {
  int64_t limit_bytes = 0;
  CachePolicy samples = CachePolicy::planned;  // of samples that the host keeps
  CachePolicy blocks = CachePolicy::lru;       // of blocks that plugins keep
  bool global_shuffle = false;
  bool augments = true;  // training reads depend on sample keys, so the host cannot keep them
  std::string source;    // its id
  uint64_t train_samples = 0, val_samples = 0;
  int64_t sample_bytes = 0;
  int64_t room_bytes = 0;  // how large this process may get; 0: not known
};

// For the start of a run: what the cache will hold, and settings that do not fit. Empty without a cache.
std::vector<std::string> cache_outlook(const CacheSetting& setting);

}  // namespace headroom
