// Which episodes are for training and which for validation: the permutation of numpy's legacy generator, so that the
// split equals the original's.
#pragma once

#include <cstdint>
#include <vector>

namespace dual_arm_hdf5 {

// numpy.random.RandomState(seed).permutation(count).
std::vector<uint64_t> numpy_permutation(uint32_t seed, uint64_t count);

struct EpisodeSplit {
  std::vector<uint64_t> train, val;  // numbers of episodes
};
// The first int(train_ratio * count) of the permutation train.
EpisodeSplit divide_episodes(uint64_t count, double train_ratio, uint32_t seed);

}  // namespace dual_arm_hdf5
