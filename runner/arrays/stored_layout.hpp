// What kind of storage a source reads: the order of "auto" follows from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "arrays/hdf5_plan.hpp"
#include "mutex.hpp"

namespace headroom {

// Of all datasets together; bytes are decoded ones.
struct StoredLayout {
  uint64_t datasets = 0, bytes = 0;
  uint64_t compressed_bytes = 0;     // in chunks with filters, which are decoded whole
  uint64_t largest_chunk_bytes = 0;  // of those
  bool mostly_compressed() const { return 2 * compressed_bytes > bytes; }
};

// Counts the datasets that are opened through headroom.arrays/1 while it lives, each once. One at a time.
class LayoutCensus {
 public:
  LayoutCensus();
  ~LayoutCensus();
  LayoutCensus(const LayoutCensus&) = delete;
  LayoutCensus& operator=(const LayoutCensus&) = delete;

  StoredLayout total() const;  // [any]

 private:
  friend void note_opened(const ArrayPlan& plan, const std::string& name);
  mutable Mutex mutex_;
  // By device, inode, dataset.
  std::map<std::tuple<uint64_t, uint64_t, std::string>, StoredLayout> seen_ GUARDED_BY(mutex_);
};

// [any] A dataset was opened: to the census, where there is one. Warns, once in a process, of a chunk that
// data.chunk_cache_size does not hold.
void note_opened(const ArrayPlan& plan, const std::string& name);

}  // namespace headroom
