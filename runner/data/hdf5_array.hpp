// One dataset as the arrays service hands it out: what it looks like, and boxes of it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "data/hdf5_file.hpp"
#include "data/hdf5_layout.hpp"

namespace headroom {

// Made and destroyed under Hdf5Lock. const members from any thread, without it.
class Hdf5Array {
 public:
  Hdf5Array(const std::string& path, const std::string& dataset);

  const ArrayLayout& layout() const { return layout_; }

  // hr_arrays.read_box: takes Hdf5Lock for each block of at most 4 MiB, converts outside of it. Throws sdk::Error.
  void read_box(std::span<const uint64_t> start, std::span<const uint64_t> count,
                std::span<const hr_array_target> targets) const;

  // "'/emg2pose/timeseries' of '/data/a.hdf5'", for sentences.
  std::string what() const;

 private:
  void read_block(std::span<const uint64_t> start, std::span<const uint64_t> count, void* records) const;
  const ArrayMember& checked_target(const hr_array_target& target) const;
  void check_box(std::span<const uint64_t> start, std::span<const uint64_t> count) const;

  std::shared_ptr<Hdf5File> file_;
  std::string name_;
  ArrayLayout layout_;
};

}  // namespace headroom
