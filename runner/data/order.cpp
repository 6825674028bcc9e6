#include "data/order.hpp"

#include "headroom/random.h"

namespace headroom {

namespace {

// Measured over epochs: with fewer rounds, or domains below 256, the permutations of 3 to 5 samples come visibly
// unevenly.
constexpr int rounds = 6;
constexpr int fewest_half_bits = 4;

constexpr uint64_t order_site = 0x6F72646572;  // "order": apart from every site of a sample

}  // namespace

Order::Order(Shuffle shuffle, uint64_t length, uint64_t seed, uint64_t epoch)
    : shuffle_(shuffle), length_(length), keys_{}, half_bits_(fewest_half_bits) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < length) ++half_bits_;
  for (uint64_t i = 0; i < 4; ++i) keys_[i] = hr_philox64(hr_philox64(seed, order_site, epoch), order_site, i);
}

uint64_t Order::at(uint64_t position) const {
  if (shuffle_ == Shuffle::sequential || length_ < 2) return position;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t index = position;
  do {
    uint64_t left = index >> half_bits_, right = index & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t mixed = left ^ (hr_philox64(keys_[round % 4], round, right) & mask);
      left = right;
      right = mixed;
    }
    index = left << half_bits_ | right;
  } while (index >= length_);
  return index;
}

}  // namespace headroom
