// How many loader batches the processes of a run share at a time.
#pragma once

#include <cstdint>

namespace headroom {

// Training: so many of a window's `accumulation` batches that each of `ranks` processes gets about one; a divisor of
// `accumulation`, so that windows begin where they began.
int64_t batches_shared_in_training(int64_t accumulation, int64_t ranks);

}  // namespace headroom
