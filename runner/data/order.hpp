// Which sample comes when. A function of (seed, epoch) only: 0 bytes a sample, O(1) access, so resume is arithmetic and
// batches never depend on threads.
#pragma once

#include <cstdint>

namespace headroom {

enum class Shuffle { sequential, global, grouped };

// Of the grouped order: `runs` runs of `run_length` neighbours are mixed together at a time. Both at least 1.
struct Grouping {
  uint64_t runs = 32, run_length = 2048;
};

// A permutation of [0, length). [any], pure. Global order is a Feistel network over the next even power of two, walked
// until it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Grouped order cuts the
// samples into runs of neighbours, the last one shorter where they do not divide, puts the runs into such an order,
// and mixes so many consecutive ones at a time by another: neighbours are read close together, each once an epoch.
class Order {
 public:
  Order(Shuffle shuffle, uint64_t length, uint64_t seed, uint64_t epoch, Grouping grouping = {});
  uint64_t length() const { return length_; }
  uint64_t at(uint64_t position) const;  // position < length()

 private:
  uint64_t grouped(uint64_t position) const;

  Shuffle shuffle_;
  uint64_t length_;
  uint64_t keys_[4];
  Grouping grouping_;
  uint64_t runs_ = 0;         // all of them
  uint64_t missing_ = 0;      // samples by which the last run of neighbours is shorter
  uint64_t short_place_ = 0;  // where that run comes in the order of runs
};

}  // namespace headroom
