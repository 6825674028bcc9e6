// The part of each loader batch that one process of several reads.
#pragma once

#include <cstdint>

namespace headroom {

// Part `part` of `parts`, in order; the whole where there is one. Parts differ by at most one sample, and are empty
// where there are more of them than samples. REQUIRES count * parts fits 64 bits.
struct Share {
  uint64_t part = 0, parts = 1;

  uint64_t begin(uint64_t count) const { return count * part / parts; }
  uint64_t end(uint64_t count) const { return count * (part + 1) / parts; }
  uint64_t most(uint64_t count) const { return (count + parts - 1) / parts; }  // samples of any part
};

}  // namespace headroom
