#include "data/cache_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr uint64_t mib = 1 << 20;

const char* name_of(CachePolicy policy) { return policy == CachePolicy::lru ? "lru" : "planned"; }

// What becomes of the samples the host keeps.
std::string of_samples(const CacheSetting& setting) {
  if (setting.augments) {
    return "the sample cache keeps validation samples, and what datasource '" + setting.source +
           "' puts there itself: its training samples are drawn anew each epoch";
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
        "data.cache_policy = \"lru\" cannot help under a global shuffle: what was used longest ago is as likely to be "
        "next as anything; use \"planned\", or data.shuffle = \"grouped\" with few data.grouped.runs, which brings "
        "back what neighbours share");
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
