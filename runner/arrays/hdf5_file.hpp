// Open HDF5 files, shared by all arrays of the process, and few of them open at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "arrays/file_identity.hpp"
#include "arrays/hdf5.hpp"

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

  // A dataset and its dataspace, kept open with the file. `cache_bytes` of its decoded chunks are kept.
  struct Dataset {
    std::string name;
    Handle id, space;
    uint64_t cache_bytes = 0;
  };
  Dataset& dataset(const std::string& name, uint64_t cache_bytes);

  // All open datasets together keep at most this many bytes of decoded chunks.
  static void limit_chunk_caches(uint64_t bytes);

 private:
  struct Pool;
  static Pool& pool();
  Hdf5File(std::string path, const FileIdentity& identity) : path_(std::move(path)), identity_(identity) {}
  void close();

  std::string path_;
  FileIdentity identity_;
  Handle id_;
  std::list<Dataset> datasets_;  // of the open file
};

// The cache one dataset asks for: some of its chunks. 0 where it has none.
uint64_t chunk_cache_bytes(uint64_t chunk_bytes);

}  // namespace headroom
