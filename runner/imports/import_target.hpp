// The HDF5 file that an import writes: datasets, their values block by block, and a look at what the disk has of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "arrays/hdf5_writer.hpp"

namespace headroom {

struct NewDataset {
  std::string name;             // "emg", "a/b"
  DLDataType dtype;             // one that Hdf5Writer writes
  std::vector<uint64_t> shape;  // shape[0]: rows; 0: as many as come
  std::vector<std::string> channel_names = {};
};

class ImportTarget {
 public:
  // Values deflate at `deflate`; 0: they stay as they are. `file` appears with finish(). Throws CannotWrite.
  ImportTarget(std::filesystem::path file, int deflate) : file_(std::move(file)), deflate_(deflate), writer_(file_) {}

  // Returns its number for append(). Throws sdk::Error where a row has no values or more than 1 GiB, and where the name
  // is that of another dataset.
  uint32_t dataset(const NewDataset& dataset);
  void append(uint32_t id, std::span<const std::byte> values, uint64_t rows);

  // Puts the file in place. With `verify` everything is read again: throws CannotWrite where that differs.
  void finish(bool verify);

  uint64_t datasets() const { return written_.size(); }

 private:
  struct Written {
    std::string name;
    uint64_t row_bytes = 0, rows = 0;
    uint32_t checksum = 0;  // of all values
  };
  void require_own_name(const std::string& name) const;
  void require_reads_back(const Written& written) const;

  std::filesystem::path file_;
  int deflate_;
  Hdf5Writer writer_;
  std::vector<Written> written_;
};

}  // namespace headroom
