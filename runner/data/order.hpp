// The order of an epoch's samples, as a function of seed and epoch. It takes no memory and O(1) time a sample, so a run
// resumes anywhere, and batches do not depend on threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

struct DataSection;
struct StoredLayout;

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

// What data.shuffle and the lengths of data.grouped come to, by how the data is stored.
struct OrderChoice {
  Shuffle shuffle = Shuffle::global;
  Grouping grouping;         // of the grouped order
  std::string name;          // "global", "grouped", "sequential"
  uint64_t mixed_bytes = 0;  // grouped: about how many bytes of decoded chunks are in use at a time
  uint64_t runs_there = 0;   // grouped: runs in all of the source
};

// "auto" is grouped where most bytes lie in compressed chunks, else global. It depends on how the data is stored and on
// no setting of memory or speed, so that results do not. The same holds for an automatic run length. With compressed
// chunks it is chosen so that 16 MiB of decoded data are mixed at a time. Elsewhere, and where that gives runs of fewer
// than 8 samples, it is the average length of a group (a sequence, an episode). It is at most 2048 samples. `samples`
// and `groups` (0: not known) are numbers of the whole source.
OrderChoice choose_order(const DataSection& data, const StoredLayout& stored, uint64_t samples, uint64_t groups = 0);

// For the log: what was decided and why; "" where the experiment says everything itself.
std::string order_line(const DataSection& data, const OrderChoice& choice, const StoredLayout& stored);

// For the log: a warning and what to set, where the chunks in use do not fit data.chunk_cache_size, or where the
// grouped order that was asked for mixes all runs; else "".
std::string order_warning(const DataSection& data, const OrderChoice& choice);

}  // namespace headroom
