// What a run says of how it reads: of its loaders, where their time went and whether the model had to wait for them; of
// the sample cache, what it can do for this run before it is used, and at each epoch's end what it did.
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

// Said before a run: that data.num_workers is above half of the `processors` it may use; "" where it is not, or at most
// the 2 that are usual.
std::string workers_line(const DataSection& data, int processors);

// data.loader of summary.json: seconds by stage, batches, and what the chunk cache did.
nlohmann::json loader_json(const LoaderTimes& times, const ChunkCache::Statistics& chunks, const DataSection& data);

// "the loader kept up: the model waited 1.2 % of the time", or that it is the bottleneck, by what, and what to set.
// `seconds` is how long the run took, `processors` how many it may use. "" for a run without batches.
std::string loader_line(const LoaderTimes& times, const ChunkCache::Statistics& chunks, double seconds,
                        const DataSection& data, int processors);

// "cache: 374 items, 49876 / 51200 MB, 82.45 % hits (8245 hits, 1755 misses), 12 evictions"; MB are 2^20, as in the
// guides.
std::string cache_line(const SampleCache::Statistics& statistics);
nlohmann::json cache_json(const SampleCache::Statistics& statistics);

// The part of reads that hit in an epoch, once the cache is warm, where everything is used once an epoch and `kept` of
// it fits: all that is kept under `planned`; under `lru`, c + (1 - c) ln(1 - c) of a global shuffle, and nothing when
// the order is the same each time.
double expected_hit_rate(CachePolicy policy, bool shuffled, double kept);

struct CacheSetting {
  int64_t limit_bytes = 0;
  CachePolicy samples = CachePolicy::planned, blocks = CachePolicy::lru;  // of the host's samples, of plugins' blocks
  bool global_shuffle = false;
  bool augments = true;  // the source's training reads depend on keys
  std::string source;    // its id
  uint64_t train_samples = 0, val_samples = 0;
  int64_t sample_bytes = 0;
  int64_t room_bytes = 0;  // how far this process may grow; 0: no bound is known
};

// What to say before the first epoch. Empty without a cache.
std::vector<std::string> cache_outlook(const CacheSetting& setting);

}  // namespace headroom
