#include "arrays/stored_layout.hpp"

#include <algorithm>

#include "arrays/array_session.hpp"
#include "arrays/box.hpp"

namespace headroom {

StoredLayout layout_of(const ArrayPlan& plan) {
  StoredLayout stored{.datasets = 1, .bytes = product(plan.layout.shape) * plan.layout.element_bytes};
  if (!plan.layout.filtered || plan.layout.chunk.empty()) return stored;
  stored.compressed_bytes = stored.bytes;
  stored.largest_chunk_bytes = plan.layout.chunk_bytes();
  return stored;
}

LayoutCensus::LayoutCensus(ArraySession& session) : session_(session) {
  const MutexLock lock(session_.mutex_);
  session_.census_ = this;
}

LayoutCensus::~LayoutCensus() {
  const MutexLock lock(session_.mutex_);
  session_.census_ = nullptr;
}

StoredLayout LayoutCensus::total() const {
  const MutexLock lock(session_.mutex_);
  StoredLayout total;
  for (const auto& [key, stored] : seen_) {
    total.datasets += stored.datasets;
    total.bytes += stored.bytes;
    total.compressed_bytes += stored.compressed_bytes;
    total.largest_chunk_bytes = std::max(total.largest_chunk_bytes, stored.largest_chunk_bytes);
  }
  return total;
}

}  // namespace headroom
