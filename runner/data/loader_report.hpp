// What a run says of its loaders: where their time went, and whether the model had to wait for them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "arrays/chunk_cache.hpp"
#include "config/experiment.hpp"
#include "data/loader.hpp"

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

}  // namespace headroom
