// One array of numpy's format .npy, in memory as the file has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headroom/abi.h"

namespace headroom {

struct NpyArray {
  DLDataType dtype{};  // bits 0: no numbers: strings, objects, records
  std::string type;    // numpy's name of it: "<f4"
  bool big_endian = false, column_major = false;
  std::vector<uint64_t> shape;
  std::span<const std::byte> values;

  // [start, start + rows) along the first axis, row-major and little-endian, as stored_dtype(). REQUIRES dtype.bits >
  // 0.
  void read_rows(uint64_t start, uint64_t rows, std::byte* to) const;
  DLDataType stored_dtype() const;  // float16, which no dataset here has, becomes float32
  uint64_t row_values() const;
};

// Throws sdk::Error(HR_DATA_CORRUPT), with a clause, where `file` is no whole array.
NpyArray npy_array(std::span<const std::byte> file);

}  // namespace headroom
