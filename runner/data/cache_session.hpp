// What one run keeps in memory of its samples: whole ones of the host's, and blocks of its plugins' (headroom.cache/1).
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/sample_cache.hpp"
#include "headroom/abi.h"
#include "plugins/session.hpp"
#include "plugins/source.hpp"

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

// The table of headroom.cache/1: plugins' blocks in the cache of their run. [any]
const hr_cache& cache_service();

// Whole samples of one loader in the sample cache, as batches hold them: all fields, standardised, one block a sample.
// All members from any thread. Only for reads that do not depend on the sample's key.
class KeptSamples {
 public:
  KeptSamples(SampleCache& cache, std::span<const Field> fields, CachePolicy policy);
  ~KeptSamples();  // drops them
  KeptSamples(const KeptSamples&) = delete;
  KeptSamples& operator=(const KeptSamples&) = delete;

  // `at`: one sample's place in a slot. Copies: a batch is one piece of memory. False when it is not there.
  bool load(uint64_t index, std::span<const DLTensor> at) const;
  // Keeps it where there is room.
  void store(uint64_t index, std::span<const DLTensor> at) const;

 private:
  std::string key(uint64_t index) const;

  SampleCache& cache_;
  CachePolicy policy_;
  std::vector<size_t> field_bytes_;
  uint64_t bytes_ = 0;
  std::string prefix_;
};

}  // namespace headroom
