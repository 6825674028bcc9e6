// One dataset as the arrays service hands it out: what it looks like, and boxes of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "arrays/array_plans.hpp"
#include "arrays/array_session.hpp"
#include "arrays/direct_read.hpp"
#include "arrays/hdf5_file.hpp"

namespace headroom {

// const members from any thread.
class Hdf5Array {
 public:
  // Without Hdf5Lock: libhdf5 looks at the file in a child (hdf5_child.hpp).
  Hdf5Array(const std::string& path, const std::string& dataset,
            std::shared_ptr<ArraySession> session = ArraySession::of_process());

  const ArrayLayout& layout() const { return planned_.plan->layout; }
  const ArrayPlan& plan() const { return *planned_.plan; }

  // hr_arrays.read_box and read_box_check_finite, by the lane that was planned. False where it is looking and a value that
  // went into a target of float32 or float64 is not finite. Throws sdk::Error.
  bool read_box(std::span<const uint64_t> start, std::span<const uint64_t> count,
                std::span<const hr_array_target> targets, bool looking = false) const;

  // Whole records of a box, byte by byte as the file has them. REQUIRES layout().as_in_file.
  void read_records(std::span<const uint64_t> start, std::span<const uint64_t> count, std::byte* records) const;

  // "'/emg2pose/timeseries' of '/data/a.hdf5'", for sentences.
  std::string what() const { return dataset_of(name_, path_); }

 private:
  void read(std::span<const uint64_t> start, std::span<const uint64_t> count, RecordSink& sink) const;
  void read_by_library(std::span<const uint64_t> start, std::span<const uint64_t> count, RecordSink& sink) const;
  void read_block(std::span<const uint64_t> start, std::span<const uint64_t> count, void* records) const;
  std::span<const std::byte> fetch_chunk(const Coordinates& origin, uint32_t& filter_mask) const;
  Hdf5File::Dataset& library_dataset(uint64_t cache_bytes) const;
  void read_by_lane(const Descriptor& descriptor, std::span<const uint64_t> start, std::span<const uint64_t> count,
                    RecordSink& sink) const;
  [[noreturn]] void throw_bad(const BadPlace& bad, std::span<const uint64_t> start,
                              std::span<const uint64_t> count) const;
  const ArrayMember& checked_target(const hr_array_target& target) const;
  void check_box(std::span<const uint64_t> start, std::span<const uint64_t> count) const;

  const std::shared_ptr<ArraySession> session_;
  const bool mapped_;
  std::string path_, name_;
  PlannedArray planned_;
  mutable std::shared_ptr<Hdf5File> library_;  // of the lanes that need it, from their first read on; under Hdf5Lock
  mutable Handle memory_type_;
};

}  // namespace headroom
