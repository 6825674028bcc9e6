#include "data/order.hpp"

#include <algorithm>
#include <bit>

#include "headroom/random.h"

namespace headroom {

namespace {

// With fewer rounds, or domains below 256, some permutations of 3 to 5 samples come visibly more often (measured over
// many epochs).
constexpr uint64_t rounds = 6;
constexpr int fewest_half_bits = 4;

constexpr uint64_t order_site = 0x6F72646572;  // "order": differs from every site of a sample's own draws

// The permutation number `tweak` of [0, length) under four keys.
class Feistel {
 public:
  Feistel(const uint64_t (&keys)[4], uint64_t tweak, uint64_t length)
      : keys_(keys), site_(tweak * rounds), length_(length) {
    // Both halves have as many bits: the domain is the next even power of two.
    half_bits_ = length < 2 ? 0 : std::max(fewest_half_bits, static_cast<int>(std::bit_width(length - 1) + 1) / 2);
    mask_ = (uint64_t{1} << half_bits_) - 1;
  }

  uint64_t at(uint64_t position) const {
    if (length_ < 2) return position;
    uint64_t index = position;
    do {
      uint64_t left = index >> half_bits_, right = index & mask_;
      for (uint64_t round = 0; round < rounds; ++round) {
        const uint64_t mixed = left ^ mix(round, right);
        left = right;
        right = mixed;
      }
      index = left << half_bits_ | right;
    } while (index >= length_);
    return index;
  }

  // The inverse of at(): the rounds backwards.
  uint64_t position_of(uint64_t index) const {
    if (length_ < 2) return index;
    uint64_t position = index;
    do {
      uint64_t left = position >> half_bits_, right = position & mask_;
      for (uint64_t round = rounds; round-- > 0;) {
        const uint64_t mixed = right ^ mix(round, left);
        right = left;
        left = mixed;
      }
      position = left << half_bits_ | right;
    } while (position >= length_);
    return position;
  }

 private:
  uint64_t mix(uint64_t round, uint64_t half) const {
    return hr_philox64(keys_[round % 4], site_ + round, half) & mask_;
  }

  const uint64_t (&keys_)[4];
  uint64_t site_, length_, mask_ = 0;
  int half_bits_ = 0;
};

}  // namespace

Order::Order(Shuffle shuffle, uint64_t length, uint64_t seed, uint64_t epoch, Grouping grouping)
    : shuffle_(shuffle), length_(length), keys_{}, grouping_(grouping) {
  for (uint64_t i = 0; i < 4; ++i) keys_[i] = hr_philox64(hr_philox64(seed, order_site, epoch), order_site, i);
  if (shuffle != Shuffle::grouped || length == 0) return;
  grouping_.run_length = std::min(grouping.run_length, length);
  runs_ = (length - 1) / grouping_.run_length + 1;
  grouping_.runs = std::min(grouping.runs, runs_);
  missing_ = (grouping_.run_length - length % grouping_.run_length) % grouping_.run_length;
  short_place_ = Feistel(keys_, 0, runs_).position_of(runs_ - 1);
}

uint64_t Order::at(uint64_t position) const {
  switch (shuffle_) {
    case Shuffle::sequential:
      return position;
    case Shuffle::global:
      return Feistel(keys_, 0, length_).at(position);
    case Shuffle::grouped:
      return grouped(position);
  }
  return position;
}

// Positions are computed as if all runs were equally long, so those after the group with the short run move up by what
// is missing there.
uint64_t Order::grouped(uint64_t position) const {
  const uint64_t full = grouping_.runs * grouping_.run_length, short_group = short_place_ / grouping_.runs;
  if (position >= (short_group + 1) * full - missing_) position += missing_;
  const uint64_t group = position / full, first_run = group * grouping_.runs;
  const uint64_t runs = std::min(grouping_.runs, runs_ - first_run);
  const uint64_t samples = runs * grouping_.run_length - (group == short_group ? missing_ : 0);

  const uint64_t mixed = Feistel(keys_, group + 1, samples).at(position % full);
  uint64_t place = first_run + mixed / grouping_.run_length;
  if (group == short_group) {  // the short run counts as the group's last
    const uint64_t last = first_run + runs - 1;
    place = place == last ? short_place_ : place == short_place_ ? last : place;
  }
  return Feistel(keys_, 0, runs_).at(place) * grouping_.run_length + mixed % grouping_.run_length;
}

}  // namespace headroom
