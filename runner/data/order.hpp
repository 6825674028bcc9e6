// Which sample comes when. A function of (seed, epoch) only: 0 bytes a sample, O(1) access, so resume is arithmetic and
// batches never depend on threads.
#pragma once

#include <cstdint>

namespace headroom {

enum class Shuffle { sequential, global };

// A permutation of [0, length). [any], pure. Global order is a Feistel network over the next even power of two, walked
// until it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
class Order {
 public:
  Order(Shuffle shuffle, uint64_t length, uint64_t seed, uint64_t epoch);
  uint64_t length() const { return length_; }
  uint64_t at(uint64_t position) const;  // position < length()

 private:
  Shuffle shuffle_;
  uint64_t length_;
  uint64_t keys_[4];
  int half_bits_;
};

}  // namespace headroom
