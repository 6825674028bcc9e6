// The sample cache of one run: blocks that its plugins keep (headroom.cache/1), or whole samples that the host keeps.
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
  SampleCache blocks;  // limit: `data.cache_size`; 0 until it is set
  // The policy of blocks that plugins keep (`data.cache_policy`); a loader sets that of whole samples itself.
  std::atomic<CachePolicy> plugin_policy = CachePolicy::lru;
  // Set once a plugin calls headroom.cache/1. The source then decides what is kept, and the host keeps no samples.
  std::atomic<bool> plugins_use_it = false;

  // The session of code that belongs to no run. Never destroyed.
  static const std::shared_ptr<CacheSession>& of_process();
};

// The cache of a run, or of_process() where it has none.
inline const std::shared_ptr<CacheSession>& cache_of(const Session& session) {
  return session.cache != nullptr ? session.cache : CacheSession::of_process();
}

// The table of headroom.cache/1. Blocks lie in the cache of the calling plugin's run. [any]
const hr_cache& cache_service();

// Whole samples of one loader in the sample cache, as batches hold them: all fields, standardised, one block a sample.
// All members from any thread. Only for reads that do not depend on the sample's key.
class KeptSamples {
 public:
  KeptSamples(SampleCache& cache, std::span<const Field> fields, CachePolicy policy);
  ~KeptSamples();  // drops them from the cache
  KeptSamples(const KeptSamples&) = delete;
  KeptSamples& operator=(const KeptSamples&) = delete;

  // Copies the sample with this source index to `at`, its place in a slot. False where it is not kept.
  bool load(uint64_t index, std::span<const DLTensor> at) const;
  // Copies the sample at `at` into the cache, where there is room.
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
