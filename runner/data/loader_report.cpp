#include "data/loader_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arrays/chunk_cache.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr double kept_up = 0.05;  // of the time: less is not worth a setting

std::string percent(double part) { return percent_text(part, part < 0.1 ? 1 : 0); }

std::string more_workers(const DataSection& data, int processors) {
  if (data.num_workers >= processors) return "";
  return "raise data.num_workers (" + std::to_string(data.num_workers) + "; " + std::to_string(processors) +
         " processors are there)";
}

// What to set so that the model waits less.
std::string advice(const LoaderTimes& times, const ChunkCache::Statistics& chunks, const DataSection& data,
                   int processors) {
  if (data.num_workers == 0) return "set data.num_workers to 1 or more, to read while the model computes";
  if (times.disk >= std::max(times.decode, times.normalize))
    return "raise data.prefetch_factor, or put the files on a faster disk";
  if (const std::string more = more_workers(data, processors); !more.empty()) return more;
  if (chunks.misses > chunks.hits && data.shuffle == "global")
    return "most chunks are decoded again for every sample: set data.shuffle = \"grouped\"";
  if (chunks.misses > chunks.hits) return "raise data.chunk_cache_size";
  return "all processors read already: make samples smaller, or store them without compression";
}

}  // namespace

std::string workers_line(const DataSection& data, int processors) {
  const int good = std::max(DataSection().num_workers, processors / 2);
  if (data.num_workers <= good) return "";
  return "data.num_workers is " + std::to_string(data.num_workers) + ", more than half of the " +
         std::to_string(processors) + (processors == 1 ? " processor" : " processors") +
         " this run may use: readers take them from the model; " + std::to_string(good) +
         " is a good rule, more where a run ends with the loader as its bottleneck";
}

nlohmann::json loader_json(const LoaderTimes& times, const ChunkCache::Statistics& chunks, const DataSection& data) {
  return {{"batches", times.batches},
          {"num_workers", data.num_workers},
          {"disk_seconds", times.disk},
          {"decode_seconds", times.decode},
          {"normalize_seconds", times.normalize},
          {"idle_seconds", times.idle},
          {"stall_seconds", times.stall},
          {"chunk_cache", {{"hits", chunks.hits}, {"misses", chunks.misses}, {"kept_bytes", chunks.kept_bytes}}}};
}

std::string loader_line(const LoaderTimes& times, const ChunkCache::Statistics& chunks, double seconds,
                        const DataSection& data, int processors) {
  if (times.batches == 0 || seconds <= 0) return "";
  const double waited = std::min(1.0, times.stall / seconds);
  const std::string share = "the model waited " + percent(waited) + " of the time";
  if (waited <= kept_up) return "the loader kept up: " + share;
  const double busy = std::max(times.disk + times.decode + times.normalize, 1e-9);
  return "the loader is the bottleneck: " + share + "; its readers spent " + percent(times.decode / busy) +
         " decoding, " + percent(times.disk / busy) + " waiting for the disk, " + percent(times.normalize / busy) +
         " normalising: " + advice(times, chunks, data, processors);
}

}  // namespace headroom
