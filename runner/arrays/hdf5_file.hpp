// Open HDF5 files, shared by all arrays of the process, and few of them open at a time.
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

// One file on disk, whatever paths lead to it. It opens when it is first needed; when many files are open the one
// unused for longest is closed and opens again by itself, after a check that it is still the same file. Everything here
// under Hdf5Lock; the end takes it.
class Hdf5File {
 public:
  // The file behind `path`, opened. Throws sdk::Error: missing, unreadable, locked, empty, truncated, not HDF5.
  static std::shared_ptr<Hdf5File> share(const std::string& path);
  ~Hdf5File();

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }
  hid_t id();

  // A dataset and its dataspace, kept open with the file. libhdf5 keeps `cache_bytes` of its decoded chunks, which come
  // out of the limit of `chunks`.
  struct Dataset {
    std::string name;
    Handle id, space;
    uint64_t cache_bytes = 0;
    std::shared_ptr<ChunkCache> chunks = nullptr;
  };
  Dataset& dataset(const std::string& name, uint64_t cache_bytes, const std::shared_ptr<ChunkCache>& chunks);

  // Closes files until what libhdf5 keeps of their chunks is within the limit of `chunks` again.
  static void close_overdrawn(const ChunkCache& chunks);

 private:
  struct Pool;
  static Pool& pool();
  Hdf5File(std::string path, const FileIdentity& identity) : path_(std::move(path)), identity_(identity) {}
  void close();
  bool draws_on(const ChunkCache& chunks) const;

  std::string path_;
  FileIdentity identity_;
  Handle id_;
  std::list<Dataset> datasets_;  // of the open file
};

// The cache one dataset asks for: some of its chunks. 0 where it has none.
uint64_t chunk_cache_bytes(uint64_t chunk_bytes);

}  // namespace headroom
