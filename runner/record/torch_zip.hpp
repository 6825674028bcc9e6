// The container of PyTorch's files, a zip archive whose entries are stored as they are, and of numpy's .npz, whose
// entries may be deflated. LibTorch's own reader
// (PyTorchStreamReader, torch::jit::pickle_load) is not used: it is a part of libtorch_cpu, which the program that
// imports checkpoints does not load, and it copies the whole file, while here tensors are spans of a mapping.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

namespace headroom {

// What is wrong with such a file, as a clause: "is cut off".
struct BadTorchFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An entry and what its bytes must add up to.
struct ZipEntry {
  std::span<const std::byte> data;  // as stored
  uint32_t crc = 0;                 // of what is unpacked
  bool deflated = false;
  uint64_t bytes = 0;  // unpacked

  // BadTorchFile where they do not. REQUIRES !deflated.
  void verify(const std::string& name) const;
};

// Entries by name; zip64 too. BadTorchFile for anything but whole, unencrypted entries, uncompressed unless they
// `may_be_deflated`.
std::map<std::string, ZipEntry> read_zip(std::span<const std::byte> file, bool may_be_deflated = false);

}  // namespace headroom
