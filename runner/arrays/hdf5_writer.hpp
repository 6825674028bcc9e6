// One HDF5 file in the making: written beside its name, put in place when it is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "headroom/abi.h"

namespace headroom {

// The disk's or the folder's fault, never the data's. HR_IO.
struct CannotWrite : sdk::Error {
  explicit CannotWrite(const std::string& sentence) : Error(HR_IO, sentence) {}
};

// Of the call into libhdf5 that failed last; `action`: "create", "append to /x".
[[noreturn]] void throw_cannot_write(const std::filesystem::path& path, const std::string& action);

// Flushes `partial` to the disk, gives it the name `path`, and makes the name last. Throws CannotWrite.
void put_in_place(const std::filesystem::path& partial, const std::filesystem::path& path);

// One thread at a time; takes Hdf5Lock itself. Throws sdk::Error. The same calls give the same bytes: nothing of time
// or machine goes in.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::filesystem::path& path);
  ~Hdf5Writer();  // without commit(): leaves nothing behind

  uint32_t dataset(const hr_array_spec& spec);
  void append(uint32_t id, const void* data, uint64_t rows);
  void attribute(const std::string& object, const std::string& name, const hr_attribute& value);
  void commit();  // all rows are there -> on the disk -> renamed

 private:
  struct Dataset {
    std::string name;
    Handle id, memory_type;
    std::vector<hsize_t> shape;  // [0]: rows now
    uint64_t rows_done = 0;
    bool grows = false;
  };
  void create(Dataset& dataset, const hr_array_spec& spec, hid_t file_type);

  std::filesystem::path path_, partial_;
  Handle file_;
  std::vector<Dataset> datasets_;
};

}  // namespace headroom
