// What one run keeps in memory of its samples: whole ones of the host's, and blocks of its plugins' (headroom.cache/1).
#pragma once

#include <atomic>
#include <memory>

#include "data/sample_cache.hpp"
#include "plugins/session.hpp"

namespace headroom {

// All members [any].
struct CacheSession {
  SampleCache blocks;  // its limit is `data.cache_size`; 0 until set: nothing is kept
  // What goes for blocks that plugins keep (`data.cache_policy`); the host's own samples have their own policy.
  std::atomic<CachePolicy> plugin_policy = CachePolicy::lru;
  // A plugin has asked for headroom.cache/1: the source keeps what it wants kept, and the host nothing.
  std::atomic<bool> plugins_use_it = false;

  // Of whatever belongs to no run.
  static const std::shared_ptr<CacheSession>& of_process();
};

inline const std::shared_ptr<CacheSession>& cache_of(const Session& session) {
  return session.cache != nullptr ? session.cache : CacheSession::of_process();
}

}  // namespace headroom
