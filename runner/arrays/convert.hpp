// Converts elements from the type and layout they have in a file into those a reader asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arrays/block_copy.hpp"
#include "headroom/abi.h"

namespace headroom {

inline bool same_dtype(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

// "float32", "uint8", "bool"; "nothing this host reads" when bits is 0.
std::string array_dtype_name(DLDataType dtype);

// Whether `from` converts to `to`: every number to float32, float64 and bool, integers to integers whose range holds
// all their values. Nothing but float16 itself converts to float16.
bool convertible(DLDataType from, DLDataType to);

// For each of `elements` elements e: `values` neighbouring values at `from + e * from_stride` are written as neighbours
// to `to + e * to_stride`. Bool becomes 0 or 1; floats round to nearest. Pointers need no alignment.
struct Conversion {
  DLDataType from_dtype, to_dtype;
  bool swap = false;  // the source has the other byte order
  uint64_t values = 1;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint64_t from_stride = 0, to_stride = 0;  // bytes
  uint64_t elements = 0;
  FiniteCheck check = FiniteCheck::none;  // check of what is written, which is of that type
  bool past_caches = false;               // as for copy_block()
};
// Returns false where a checked value is not finite; all values are written in any case. REQUIRES
// convertible(from_dtype, to_dtype). [any]
bool convert(const Conversion& conversion);

}  // namespace headroom
