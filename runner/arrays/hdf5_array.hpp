// An open dataset of headroom.arrays/1: its layout, and boxes of its values.
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

// const members [any].
class Hdf5Array {
 public:
  // Opens `dataset` ("a/b" or "/a/b") of the file at `path`. Throws sdk::Error where either cannot be read. REQUIRES
  // that the thread does not hold Hdf5Lock: it waits for the child process (hdf5_child.hpp).
  Hdf5Array(const std::string& path, const std::string& dataset,
            std::shared_ptr<ArraySession> session = ArraySession::of_process());

  const ArrayLayout& layout() const { return planned_.plan->layout; }
  const ArrayPlan& plan() const { return *planned_.plan; }

  // Reads the box [start, start + count) into `targets`, by the plan's lane; `start` and `count` have one entry for
  // each axis. This is hr_arrays.read_box, and with `check_finite` read_box_check_finite: then it returns false where a
  // value written to a target of float32 or float64 is not finite. Throws sdk::Error for a box outside of the dataset,
  // a target that does not fit, bytes that cannot be read, and a file that changed since it was planned.
  bool read_box(std::span<const uint64_t> start, std::span<const uint64_t> count,
                std::span<const hr_array_target> targets, bool check_finite = false) const;

  // Reads whole records of a box as the file has them, layout().record_bytes each. Throws as read_box(). REQUIRES
  // layout().as_in_file.
  void read_records(std::span<const uint64_t> start, std::span<const uint64_t> count, std::byte* records) const;

  // One value of the lists of numbers that it holds. Throws sdk::Error (HR_INVALID_ARGUMENT) where it holds none.
  const ArrayMember& list_value() const;

  // Reads the list of numbers at `at`, which has one index for each axis, by H5Dread: its first values, at most `most`,
  // go to `to` as `dtype`. Returns how many it has. Throws as read_box(), and for a dataset that does not hold such
  // lists, or a list of more than 64 MiB.
  uint64_t read_list(std::span<const uint64_t> at, DLDataType dtype, void* to, uint64_t most) const;

  // Its name in sentences.
  std::string what() const { return dataset_of(name_, path_); }

 private:
  void read(std::span<const uint64_t> start, std::span<const uint64_t> count, RecordSink& sink) const;
  void read_by_library(std::span<const uint64_t> start, std::span<const uint64_t> count, RecordSink& sink) const;
  void read_block(std::span<const uint64_t> start, std::span<const uint64_t> count, void* records) const;
  ThreadBuffer::Use fetch_chunk(const Coordinates& origin, uint32_t& filter_mask) const;
  Hdf5File::Dataset& library_dataset(uint64_t cache_bytes) const;
  void read_by_lane(const Descriptor& descriptor, std::span<const uint64_t> start, std::span<const uint64_t> count,
                    RecordSink& sink) const;
  [[noreturn]] void throw_bad(const BadPlace& bad, std::span<const uint64_t> start,
                              std::span<const uint64_t> count) const;
  void require_all_unchanged(const Descriptor& own) const;
  const ArrayMember& checked_target(const hr_array_target& target) const;
  void check_box(std::span<const uint64_t> start, std::span<const uint64_t> count) const;

  const std::shared_ptr<ArraySession> session_;
  const bool mapped_;
  std::string path_, name_;
  PlannedArray planned_;
  // Of lanes that go through libhdf5, from their first read on; guarded by Hdf5Lock.
  mutable std::shared_ptr<Hdf5File> library_;
  mutable Handle memory_type_;
};

// An hr_array is an Hdf5Array, of which plugins know the name only. Throws sdk::Error for NULL.
inline const Hdf5Array& array_of(const hr_array* array) {
  if (array == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, "the array handle is NULL");
  return *reinterpret_cast<const Hdf5Array*>(array);
}

}  // namespace headroom
