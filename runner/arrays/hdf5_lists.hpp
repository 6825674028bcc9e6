// Lists of numbers, each of its own length (H5T_VLEN): how long they are.
#pragma once

#include <cstdint>
#include <string>

#include "arrays/hdf5.hpp"

namespace headroom {

// No list is read that takes more bytes: a damaged file may claim any length.
inline constexpr uint64_t longest_list_bytes = 64u << 20;

// Of the first lists of a dataset, row-major.
struct ListLengths {
  uint64_t seen = 0;  // how many were looked at; 0: there are none
  uint64_t shortest = 0, longest = 0, longest_at = 0;
  uint64_t values = 0;  // of all of them
};

// Reads lists until 2^16 or 16 MiB of values are seen. {} for a type without lists of numbers. Throws sdk::Error where
// they cannot be read. `what` begins the sentence: "a list of '/a' of 'b.h5'". REQUIRES Hdf5Lock.
ListLengths measure_lists(hid_t dataset, const std::string& what);

// The same for `dataset` of an open file. Throws sdk::Error (HR_INVALID_ARGUMENT) where it holds no lists of numbers.
// REQUIRES Hdf5Lock.
ListLengths list_lengths_of(hid_t file, const std::string& dataset, const std::string& path);

}  // namespace headroom
