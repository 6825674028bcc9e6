// Files that are read through libhdf5: shared by all arrays of the process, few of them open at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "arrays/chunk_cache.hpp"
#include "arrays/hdf5.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

// One file on disk, whatever paths lead to it. It is opened when it is first needed. When too many are open the least
// recently used one is closed, and opened again when it is needed, after a check that it is still the same file. All
// members REQUIRE Hdf5Lock; the destructor takes it.
class Hdf5File {
 public:
  // The file at `path`, opened. Throws sdk::Error where it is missing, unreadable, locked by a writer, empty, truncated
  // or not HDF5, and where it changed while it was in use.
  static std::shared_ptr<Hdf5File> share(const std::string& path);
  ~Hdf5File();

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }
  // libhdf5's identifier, valid until the next call that may open a file. Throws as share().
  hid_t id();

  // A dataset and its dataspace, open as long as the file is. libhdf5 caches `cache_bytes` of its decoded chunks; they
  // count against the limit of `chunks`.
  struct Dataset {
    std::string name;
    Handle id, space;
    uint64_t cache_bytes = 0;
    std::shared_ptr<ChunkCache> chunks = nullptr;
  };
  // The dataset, opened where it is not. Valid until the file is closed. Throws sdk::Error.
  Dataset& dataset(const std::string& name, uint64_t cache_bytes, const std::shared_ptr<ChunkCache>& chunks);

  // Closes files, the least recently used first, until libhdf5's caches fit the limit of `chunks`. The file used last
  // stays open: it may be in use.
  static void close_overdrawn(const ChunkCache& chunks);

 private:
  struct Pool;
  static Pool& pool();
  Hdf5File(std::string path, const FileIdentity& identity) : path_(std::move(path)), identity_(identity) {}
  void close();
  bool uses(const ChunkCache& chunks) const;

  std::string path_;
  FileIdentity identity_;
  Handle id_;
  std::list<Dataset> datasets_;  // of the open file
};

// How much cache libhdf5 is given for a dataset whose chunks have `chunk_bytes`: some chunks, at least two. 0 for 0.
uint64_t chunk_cache_bytes(uint64_t chunk_bytes);

}  // namespace headroom
