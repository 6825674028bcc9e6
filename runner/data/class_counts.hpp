// How often each class occurs among the values of an integer field of a split.
#pragma once

#include <cstdint>
#include <vector>

#include "data/split.hpp"

namespace headroom {

struct ClassCounts {
  std::vector<uint64_t> counts;  // of each class
  uint64_t others = 0;           // values that are none of the classes
  uint64_t samples = 0;          // read
  uint64_t unreadable = 0;       // samples that the source could not read; they are left out
  bool whole = false;            // all samples of the split were read; else some, evenly spaced
};

// Reads only the field `field`, of at most `most_samples` samples. Error(plugin) where it holds no integers; Error with
// the source's sentence. [control]
ClassCounts count_classes(const Source& source, const Split& split, uint32_t field, int64_t classes,
                          uint64_t most_samples = UINT64_MAX);

}  // namespace headroom
