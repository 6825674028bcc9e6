// What kind of storage a source reads: the order of "auto" follows from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "arrays/hdf5_plan.hpp"

namespace headroom {

class ArraySession;

// Of all datasets together; bytes are decoded ones.
struct StoredLayout {
  uint64_t datasets = 0, bytes = 0;
  uint64_t compressed_bytes = 0;     // in chunks with filters, which are decoded whole
  uint64_t largest_chunk_bytes = 0;  // of those
  bool mostly_compressed() const { return 2 * compressed_bytes > bytes; }
};

StoredLayout layout_of(const ArrayPlan& plan);

// Counts the datasets that are opened with a session while it lives, each once. One of a session at a time.
class LayoutCensus {
 public:
  explicit LayoutCensus(ArraySession& session);
  ~LayoutCensus();
  LayoutCensus(const LayoutCensus&) = delete;
  LayoutCensus& operator=(const LayoutCensus&) = delete;

  StoredLayout total() const;  // [any]

 private:
  friend class ArraySession;
  ArraySession& session_;
  // By device, inode, dataset. Under the session's mutex.
  std::map<std::tuple<uint64_t, uint64_t, std::string>, StoredLayout> seen_;
};

}  // namespace headroom
