#include "arrays/stored_layout.hpp"

#include <atomic>
#include <spdlog/spdlog.h>

#include "arrays/box.hpp"
#include "arrays/chunk_cache.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "memory/size_text.hpp"

namespace headroom {

namespace {

Mutex open_census_mutex;
LayoutCensus* open_census GUARDED_BY(open_census_mutex) = nullptr;

StoredLayout layout_of(const ArrayPlan& plan) {
  StoredLayout stored{.datasets = 1, .bytes = product(plan.layout.shape) * plan.layout.element_bytes};
  if (!plan.layout.filtered || plan.layout.chunk.empty()) return stored;
  stored.compressed_bytes = stored.bytes;
  stored.largest_chunk_bytes = plan.layout.chunk_bytes();
  return stored;
}

void warn_of_a_large_chunk(const ArrayPlan& plan, const std::string& name, uint64_t chunk_bytes) {
  static std::atomic<bool> warned = false;
  const uint64_t limit = ChunkCache::shared().limit();
  if (chunk_bytes <= limit || warned.exchange(true)) return;
  spdlog::warn(
      "[data] a chunk of {} {} is {}, more than data.chunk_cache_size = {}: it is decoded again for every sample; set "
      "data.chunk_cache_size to at least {}, or write the data in smaller chunks",
      in_quotes(name), sdk::shape_text(plan.layout.chunk), size_text(static_cast<int64_t>(chunk_bytes)),
      size_text(static_cast<int64_t>(limit)), size_text(static_cast<int64_t>(4 * chunk_bytes)));
}

}  // namespace

LayoutCensus::LayoutCensus() {
  const MutexLock lock(open_census_mutex);
  open_census = this;
}

LayoutCensus::~LayoutCensus() {
  const MutexLock lock(open_census_mutex);
  open_census = nullptr;
}

StoredLayout LayoutCensus::total() const {
  const MutexLock lock(mutex_);
  StoredLayout total;
  for (const auto& [key, stored] : seen_) {
    total.datasets += stored.datasets;
    total.bytes += stored.bytes;
    total.compressed_bytes += stored.compressed_bytes;
    total.largest_chunk_bytes = std::max(total.largest_chunk_bytes, stored.largest_chunk_bytes);
  }
  return total;
}

void note_opened(const ArrayPlan& plan, const std::string& name) {
  const StoredLayout stored = layout_of(plan);
  if (stored.largest_chunk_bytes > 0) warn_of_a_large_chunk(plan, name, stored.largest_chunk_bytes);
  const MutexLock lock(open_census_mutex);
  if (open_census == nullptr) return;
  const MutexLock counting(open_census->mutex_);
  open_census->seen_[{plan.file.device, plan.file.inode, name}] = stored;
}

}  // namespace headroom
