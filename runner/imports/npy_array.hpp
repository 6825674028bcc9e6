// An array in numpy's format .npy, in memory as it is in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headroom/abi.h"

namespace headroom {

struct NpyArray {
  DLDataType dtype{};  // bits 0: not numbers, but strings, objects or records
  std::string type;    // numpy's name of it: "<f4"
  bool big_endian = false, column_major = false;
  std::vector<uint64_t> shape;
  std::span<const std::byte> values;

  // Copies rows [start, start + rows) along the first axis, row-major and little-endian, as stored_dtype(). REQUIRES
  // dtype.bits > 0.
  void read_rows(uint64_t start, uint64_t rows, std::byte* to) const;
  DLDataType stored_dtype() const;  // the type in HDF5: float16 becomes float32
  uint64_t row_values() const;
};

// Parses a file. Throws sdk::Error(HR_DATA_CORRUPT), with a clause, where it is not a whole array.
NpyArray npy_array(std::span<const std::byte> file);

}  // namespace headroom
