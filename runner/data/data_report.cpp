#include "data/data_report.hpp"

#include <algorithm>
#include <cmath>
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
  // Above 0, since it divides.
  const double busy = std::max(times.disk + times.decode + times.normalize, 1e-9);
  return "the loader is the bottleneck: " + share + "; its readers spent " + percent(times.decode / busy) +
         " decoding, " + percent(times.disk / busy) + " waiting for the disk, " + percent(times.normalize / busy) +
         " normalising: " + advice(times, chunks, data, processors);
}

namespace {

// cache_line() calls it MB, as the guides do.
constexpr uint64_t mib = 1 << 20;

const char* name_of(CachePolicy policy) { return policy == CachePolicy::lru ? "lru" : "planned"; }

// What becomes of the samples the host keeps.
std::string of_samples(const CacheSetting& setting) {
  if (setting.augments) {
    return "the sample cache keeps validation samples, and what datasource '" + setting.source +
           "' puts there itself: its training samples differ in every epoch";
  }
  const double all = static_cast<double>(setting.train_samples) * static_cast<double>(setting.sample_bytes);
  const double kept = all > 0 ? std::min(1.0, static_cast<double>(setting.limit_bytes) / all) : 1.0;
  if (kept >= 1.0) return "the sample cache holds all " + std::to_string(setting.train_samples) + " training samples";
  const double rate = expected_hit_rate(setting.samples, setting.global_shuffle, kept);
  std::string sentence = "the sample cache holds " +
                         std::to_string(static_cast<uint64_t>(kept * static_cast<double>(setting.train_samples))) +
                         " of " + std::to_string(setting.train_samples) +
                         " training samples: " + percent_text(rate, 1) +
                         " of reads will hit with data.cache_policy = \"" + name_of(setting.samples) + "\"";
  if (setting.samples == CachePolicy::lru) {
    sentence += ", which drops each before its turn comes again; \"planned\" would hit " +
                percent_text(expected_hit_rate(CachePolicy::planned, setting.global_shuffle, kept), 1);
  }
  return sentence;
}

}  // namespace

std::string cache_line(const SampleCache::Statistics& statistics) {
  return "cache: " + std::to_string(statistics.items) + " items, " + std::to_string(statistics.used_bytes / mib) +
         " / " + std::to_string(statistics.limit_bytes / mib) + " MB, " + percent_text(statistics.hit_rate(), 2) +
         " hits (" + std::to_string(statistics.hits) + " hits, " + std::to_string(statistics.misses) + " misses), " +
         std::to_string(statistics.evictions) + " evictions";
}

nlohmann::json cache_json(const SampleCache::Statistics& statistics) {
  return {
      {"items", statistics.items},         {"bytes", statistics.used_bytes}, {"limit_bytes", statistics.limit_bytes},
      {"hit_rate", statistics.hit_rate()}, {"hits", statistics.hits},        {"misses", statistics.misses},
      {"evictions", statistics.evictions}, {"refused", statistics.refused}};
}

// The formulas of docs/sample_cache.md: log1p(-kept) is ln(1 - kept).
double expected_hit_rate(CachePolicy policy, bool shuffled, double kept) {
  if (kept >= 1.0) return 1.0;
  if (policy == CachePolicy::planned) return kept;
  return shuffled ? kept + (1.0 - kept) * std::log1p(-kept) : 0.0;
}

std::vector<std::string> cache_outlook(const CacheSetting& setting) {
  if (setting.limit_bytes <= 0) return {};
  std::vector<std::string> lines{of_samples(setting)};
  if (setting.augments && setting.global_shuffle && setting.blocks == CachePolicy::lru) {
    lines.push_back(
        "data.cache_policy = \"lru\" cannot help under a global shuffle: the least recently used sample is as likely "
        "to be needed next as any other; use \"planned\", or data.shuffle = \"grouped\" with few data.grouped.runs, "
        "which brings back what neighbours share");
  }
  if (setting.room_bytes > 0 && setting.limit_bytes > setting.room_bytes / 2) {
    lines.push_back("data.cache_size is " + size_text(setting.limit_bytes) + ", more than half of the " +
                    size_text(setting.room_bytes) +
                    " this run may hold: it is the first to shrink when memory is short; at most " +
                    size_text(setting.room_bytes / 2) + " is a good rule");
  }
  return lines;
}

}  // namespace headroom
