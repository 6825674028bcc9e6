// How one run reads arrays: its cache of decoded chunks, the datasets it reads from another file, and a count of what
// it has opened. headroom.arrays/1 works on the session of the calling run, so several runs of one process share none
// of this.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays/chunk_cache.hpp"
#include "arrays/hdf5_plan.hpp"
#include "mutex.hpp"
#include "plugins/session.hpp"

namespace headroom {

// How data is stored, summed over datasets. Bytes are those of decoded values.
struct StoredLayout {
  uint64_t datasets = 0, bytes = 0;
  uint64_t compressed_bytes = 0;     // in chunks with filters: reading one value decodes its whole chunk
  uint64_t largest_chunk_bytes = 0;  // the largest such chunk; 0 where there is none
  bool mostly_compressed() const { return 2 * compressed_bytes > bytes; }
};

// Of one dataset.
StoredLayout layout_of(const ArrayPlan& plan);

class LayoutCensus;

// A dataset that is read from another file.
struct Substitute {
  std::string path, dataset;  // the file and dataset that a plugin asks for
  std::string file;           // read instead; its dataset has the same name, shape and members
};

// All members [any]. A setting holds for arrays that are opened after it is made. Every array keeps its session alive.
class ArraySession {
 public:
  ArraySession() = default;
  ArraySession(const ArraySession&) = delete;
  ArraySession& operator=(const ArraySession&) = delete;

  // The session of code that belongs to no run: commands that inspect files, and the start of plugins. Never destroyed.
  static const std::shared_ptr<ArraySession>& of_process();

  // How many bytes of decoded chunks all datasets together keep (`data.chunk_cache_size`); 32 MiB by default. A lower
  // limit drops chunks, and closes files of libhdf5's own caches, before this returns.
  void set_chunk_cache_limit(int64_t bytes);
  const std::shared_ptr<ChunkCache>& chunks() const { return chunks_; }

  // Whether bytes that are in the page cache are read through a mapping of their file (`data.memory_map`); off by
  // default. The first call with true installs this process's handler of SIGBUS.
  void map_files(bool wanted);
  bool maps_files() const { return maps_files_; }

  // Replaces all earlier substitutes; {}: none.
  void substitute(std::vector<Substitute> substitutes);
  // The file to read `dataset` of `path` from: its substitute's, else `path` itself.
  std::string file_of(const std::string& path, const std::string& dataset) const;

  // The files that the datasets opened so far have values in besides their own; sorted.
  std::vector<std::string> other_files() const;

  // Tells the session that the dataset `name` was opened: a LayoutCensus counts it. Warns, once in a session, of a
  // chunk that is larger than data.chunk_cache_size.
  void note_opened(const ArrayPlan& plan, const std::string& name);

 private:
  friend class LayoutCensus;

  const std::shared_ptr<ChunkCache> chunks_ = std::make_shared<ChunkCache>();
  std::atomic<bool> maps_files_ = false, warned_of_a_large_chunk_ = false;

  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> substitutes_ GUARDED_BY(mutex_);
  std::set<std::string> other_files_ GUARDED_BY(mutex_);
  LayoutCensus* census_ GUARDED_BY(mutex_) = nullptr;
};

// Counts the datasets that are opened with a session during its life, each once. A session has one census at a time,
// which keeps it alive.
class LayoutCensus {
 public:
  explicit LayoutCensus(std::shared_ptr<ArraySession> session);
  ~LayoutCensus();
  LayoutCensus(const LayoutCensus&) = delete;
  LayoutCensus& operator=(const LayoutCensus&) = delete;

  StoredLayout total() const;  // [any]

 private:
  friend class ArraySession;
  const std::shared_ptr<ArraySession> session_;
  // By device, inode and dataset; guarded by the session's mutex.
  std::map<std::tuple<uint64_t, uint64_t, std::string>, StoredLayout> seen_;
};

// The array session of a run, or of_process() where it has none.
inline const std::shared_ptr<ArraySession>& arrays_of(const Session& session) {
  return session.arrays != nullptr ? session.arrays : ArraySession::of_process();
}

}  // namespace headroom
