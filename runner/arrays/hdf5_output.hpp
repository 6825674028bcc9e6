// What goes wrong when HDF5 files are written, and how they come to stand safely on the disk.
#pragma once

#include <filesystem>
#include <string>

#include "arrays/hdf5.hpp"

namespace headroom {

// The disk's or the folder's fault, never the data's. HR_IO.
struct CannotWrite : sdk::Error {
  explicit CannotWrite(const std::string& sentence) : Error(HR_IO, sentence) {}
};

// Of the call into libhdf5 that failed last; `action`: "create", "append to /x".
[[noreturn]] void throw_cannot_write(const std::filesystem::path& path, const std::string& action);

// Flushes `partial` to the disk, gives it the name `path`, and makes the name last. Throws CannotWrite.
void put_in_place(const std::filesystem::path& partial, const std::filesystem::path& path);

}  // namespace headroom
