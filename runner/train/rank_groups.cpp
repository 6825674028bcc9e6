#include "train/rank_groups.hpp"

namespace headroom {

int64_t batches_shared_in_training(int64_t accumulation, int64_t ranks) {
  for (int64_t batches = 1; batches < accumulation; ++batches) {
    if (batches >= ranks && accumulation % batches == 0) return batches;
  }
  return ranks == 1 ? 1 : accumulation;
}

}  // namespace headroom
