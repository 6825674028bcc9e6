// A reader's memory between a file and its slots, on the host's ledger. One thread.
#pragma once

#include <memory>
#include <span>

#include "headroom/datasource.hpp"

namespace spike_hdf5 {

namespace sdk = headroom::sdk;

class Workspace {
 public:
  explicit Workspace(const sdk::Host& host) : host_(host) {}

  // As they are stored, or counted; good until the next raw().
  template <class T>
  std::span<T> raw(uint64_t count) {
    return room<T>(raw_, count);
  }
  // As a file holds them; good until the next file().
  std::span<std::byte> file(uint64_t bytes) { return room<std::byte>(file_, bytes); }
  // Cut out of a kept frame; good until the next cut().
  std::span<uint8_t> cut(uint64_t count) { return room<uint8_t>(cut_, count); }
  // Transformed, at their native size; good until the next voxels().
  std::span<float> voxels(uint64_t count) { return room<float>(voxels_, count); }

 private:
  template <class T>
  std::span<T> room(std::unique_ptr<sdk::Scratch>& scratch, uint64_t count) {
    if (!scratch || scratch->bytes() < count * sizeof(T)) {
      scratch.reset();
      scratch = std::make_unique<sdk::Scratch>(host_, count * sizeof(T));
    }
    return scratch->as<T>().first(count);
  }

  sdk::Host host_;
  std::unique_ptr<sdk::Scratch> raw_, file_, cut_, voxels_;
};

}  // namespace spike_hdf5
