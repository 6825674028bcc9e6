// Where a loader's time went.
#pragma once

#include <cstdint>

namespace headroom {

// Seconds of a loader's life: of its threads together, but for `stall`.
struct LoaderTimes {
  double disk = 0;       // waiting for bytes that were not in the page cache
  double decode = 0;     // the rest of reading: copying, decompressing, the source's own work
  double normalize = 0;  // standardising
  double idle = 0;       // with nothing to do: every batch that may be read ahead was
  double stall = 0;      // next() waited for a batch
  uint64_t batches = 0;  // read

  LoaderTimes& operator+=(const LoaderTimes& other) {
    disk += other.disk;
    decode += other.decode;
    normalize += other.normalize;
    idle += other.idle;
    stall += other.stall;
    batches += other.batches;
    return *this;
  }
};

}  // namespace headroom
