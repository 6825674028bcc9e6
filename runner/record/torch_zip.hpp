// Zip archives: the container of PyTorch's files, whose entries are stored without compression, and of numpy's .npz,
// whose entries may be deflated. LibTorch's own reader (PyTorchStreamReader, torch::jit::pickle_load) is not used: it
// is part of libtorch_cpu, which the program that imports checkpoints does not load, and it copies the whole file. Here
// tensors are spans of a mapping.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

namespace headroom {

// What is wrong with the file, as a clause: "is cut off".
struct BadTorchFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An entry and its checksum.
struct ZipEntry {
  std::span<const std::byte> data;  // as stored
  uint32_t crc = 0;                 // of what is unpacked
  bool deflated = false;
  uint64_t bytes = 0;  // unpacked

  // Throws BadTorchFile where the bytes do not have the checksum. REQUIRES !deflated.
  void verify(const std::string& name) const;
};

// The entries by name; also of zip64. Throws BadTorchFile for a damaged archive and for encrypted entries; for
// compressed ones unless they `may_be_deflated`.
std::map<std::string, ZipEntry> read_zip(std::span<const std::byte> file, bool may_be_deflated = false);

}  // namespace headroom
