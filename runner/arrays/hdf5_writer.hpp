// Writes one HDF5 file: under another name beside it, renamed when it is whole. So a file of that name is complete or
// the one that was there before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "headroom/abi.h"

namespace headroom {

// Status HR_IO: the disk or the folder is at fault, never the data.
struct CannotWrite : sdk::Error {
  explicit CannotWrite(const std::string& sentence) : Error(HR_IO, sentence) {}
};

// Throws CannotWrite with the reason of libhdf5's last failed call; `action`: "create", "append to /x". REQUIRES
// Hdf5Lock.
[[noreturn]] void throw_cannot_write(const std::filesystem::path& path, const std::string& action);

// Renames `partial` to `path`, durably: fsync() of the file before, of the folder after. Throws CannotWrite.
void put_in_place(const std::filesystem::path& partial, const std::filesystem::path& path);

// Used by one thread at a time; takes Hdf5Lock itself. All members throw sdk::Error, CannotWrite where the disk is at
// fault. The same calls give the same bytes: no time stamps are written.
class Hdf5Writer {
 public:
  // Creates the file under its temporary name. The folder of `path` must exist.
  explicit Hdf5Writer(const std::filesystem::path& path);
  // Without commit() before it, removes what was written.
  ~Hdf5Writer();

  // Creates a dataset, and the groups on the way to it. Returns its number for append().
  uint32_t dataset(const hr_array_spec& spec);
  // Writes `rows` rows behind those that are there; `data` has the dataset's element type, dense.
  void append(uint32_t id, const void* data, uint64_t rows);
  // Sets an attribute of an existing object; replaces one of that name.
  void attribute(const std::string& object, const std::string& name, const hr_attribute& value);
  // The same with a list of strings, as h5py writes one.
  void strings(const std::string& object, const std::string& name, const std::vector<std::string>& values);
  // Checks that all declared rows were written, and puts the file in place. Nothing may be called after it.
  void commit();

 private:
  struct Dataset {
    std::string name;
    Handle id, memory_type;
    std::vector<hsize_t> shape;  // [0]: rows now
    uint64_t rows_done = 0;
    bool grows = false;
  };
  // `place`: absolute_name().
  void set_attribute(const std::string& place, const std::string& name, const Handle& type, const Handle& space,
                     const void* data);
  void create(Dataset& dataset, const hr_array_spec& spec, hid_t file_type);

  std::filesystem::path path_, partial_;
  Handle file_;
  std::vector<Dataset> datasets_;
};

}  // namespace headroom
