// How one run reads arrays: what it keeps decoded, what it reads in a dataset's place, and what it has seen. A run's
// session of its own is what headroom.arrays/1 works on, so that several runs of one process do not meet here.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays/chunk_cache.hpp"
#include "arrays/hdf5_plan.hpp"
#include "mutex.hpp"
#include "plugins/session.hpp"

namespace headroom {

// Of all datasets together; bytes are decoded ones.
struct StoredLayout {
  uint64_t datasets = 0, bytes = 0;
  uint64_t compressed_bytes = 0;     // in chunks with filters, which are decoded whole
  uint64_t largest_chunk_bytes = 0;  // of those
  bool mostly_compressed() const { return 2 * compressed_bytes > bytes; }
};

StoredLayout layout_of(const ArrayPlan& plan);

class LayoutCensus;

struct Substitute {
  std::string path, dataset;  // as a plugin asks for it
  std::string file;           // has a dataset of the same name, shape and members
};

// All members [any], and for arrays that are opened from then on. Every array that was opened with it keeps it alive.
class ArraySession {
 public:
  ArraySession() = default;
  ArraySession(const ArraySession&) = delete;
  ArraySession& operator=(const ArraySession&) = delete;

  // Of whatever belongs to no run: commands that look into files, and the start of plugins.
  static const std::shared_ptr<ArraySession>& of_process();

  // Bytes of decoded chunks that all datasets together keep (`data.chunk_cache_size`); 32 MiB unless told.
  void set_chunk_cache_limit(int64_t bytes);
  const std::shared_ptr<ChunkCache>& chunks() const { return chunks_; }

  // Whether files are read through mappings where their bytes are in the page cache (`data.memory_map`).
  void map_files(bool wanted);
  bool maps_files() const { return maps_files_; }

  // Replaces all earlier substitutes.
  void substitute(std::vector<Substitute> substitutes);
  // The file to read it from: a substitute's, or `path`.
  std::string file_of(const std::string& path, const std::string& dataset) const;

  // A dataset was opened: to the census, where one is taken. Warns once of a chunk that data.chunk_cache_size does not
  // hold.
  void note_opened(const ArrayPlan& plan, const std::string& name);

 private:
  friend class LayoutCensus;

  const std::shared_ptr<ChunkCache> chunks_ = std::make_shared<ChunkCache>();
  std::atomic<bool> maps_files_ = false, warned_of_a_large_chunk_ = false;

  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> substitutes_ GUARDED_BY(mutex_);
  LayoutCensus* census_ GUARDED_BY(mutex_) = nullptr;
};

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

inline const std::shared_ptr<ArraySession>& arrays_of(const Session& session) {
  return session.arrays != nullptr ? session.arrays : ArraySession::of_process();
}

}  // namespace headroom
