// Converts elements of records as they lie in a file into what a reader asked for.
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

// True when every value of `from` has its place in `to`: into floats and bool from every number, into integers only
// where the range holds all of them.
bool convertible(DLDataType from, DLDataType to);

// `values` neighbouring values at `from + e * from_stride` go to `to + e * to_stride`, for `elements` elements. `swap`:
// the source has the other byte order. No pointer needs an alignment. REQUIRES convertible(). kBool values become 0 or
// 1; floats round to nearest. `look`: at what is written, which is of that type.
struct Conversion {
  DLDataType from_dtype, to_dtype;
  bool swap = false;
  uint64_t values = 1;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint64_t from_stride = 0, to_stride = 0;
  uint64_t elements = 0;
  Look look = Look::none;
  bool past_caches = false;  // as copy_block() has it
};
// False where it looks and a value is not finite.
bool convert(const Conversion& conversion);

}  // namespace headroom
