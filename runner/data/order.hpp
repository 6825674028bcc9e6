// The order of an epoch's samples, as a function of seed and epoch. It takes no memory and O(1) time a sample, so a run
// resumes anywhere, and batches do not depend on threads.
#pragma once

#include <cstdint>

namespace headroom {

enum class Shuffle { sequential, global, grouped };

// Of the grouped order: `runs` runs of `run_length` neighbouring samples are mixed at a time. Both are at least 1.
struct Grouping {
  uint64_t runs = 32, run_length = 2048;
};

// A permutation of [0, length). Immutable, [any].
// - global: a Feistel network over the next even power of two, applied again until the result is below length (cycle
//   walking: Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
// - grouped: the samples are cut into runs of neighbours, of which the last may be shorter. The runs are permuted; then
//   the samples of every `runs` consecutive runs are permuted together. So neighbours are read close together.
class Order {
 public:
  Order(Shuffle shuffle, uint64_t length, uint64_t seed, uint64_t epoch, Grouping grouping = {});
  uint64_t length() const { return length_; }
  // The sample at `position`. REQUIRES position < length().
  uint64_t at(uint64_t position) const;

 private:
  uint64_t grouped(uint64_t position) const;

  Shuffle shuffle_;
  uint64_t length_;
  uint64_t keys_[4];
  Grouping grouping_;
  uint64_t runs_ = 0;         // how many there are in all
  uint64_t missing_ = 0;      // samples by which the last run is shorter than the others
  uint64_t short_place_ = 0;  // the place of that run in the order of runs
};

}  // namespace headroom
