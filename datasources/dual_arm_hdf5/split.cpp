#include "split.hpp"

#include <bit>
#include <numeric>
#include <random>
#include <utility>

namespace dual_arm_hdf5 {

std::vector<uint64_t> numpy_permutation(uint32_t seed, uint64_t count) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::mt19937 words(seed);
  for (uint64_t last = count; last-- > 1;) {  // numpy draws in [0, last] by masking and rejecting
    const uint64_t mask = std::bit_ceil(last + 1) - 1;
    uint64_t other = words() & mask;
    while (other > last) other = words() & mask;
    std::swap(order[last], order[other]);
  }
  return order;
}

EpisodeSplit divide_episodes(uint64_t count, double train_ratio, uint32_t seed) {
  const std::vector<uint64_t> order = numpy_permutation(seed, count);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(train_ratio * static_cast<double>(count));
  return {{order.begin(), end}, {end, order.end()}};
}

}  // namespace dual_arm_hdf5
