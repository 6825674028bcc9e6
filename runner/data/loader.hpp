// Delivers the batches of a split in order, read ahead by threads into a pool of slots.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/loader_options.hpp"
#include "data/normalizer.hpp"
#include "data/split.hpp"

namespace headroom {

// One loader batch. Its memory returns to the pool when the last copy of `hold` goes, also after the loader's end.
// Holding more batches than extra_slots costs memory, never a deadlock: the pool grows by one.
struct Batch {
  uint64_t epoch = 0;
  uint64_t first = 0;            // position of its first sample in the epoch's order
  std::vector<uint64_t> index;   // source indices
  std::vector<uint64_t> key;     // sample keys: hr_sample_key(seed, split, augment ? epoch : 0, index)
  std::vector<DLTensor> fields;  // in the order of source.fields(), shape [count, ...]; shapes live in `hold`
  std::shared_ptr<const void> hold;
  uint64_t count() const { return index.size(); }
};

// Seconds of a loader's life: of its threads together, but for `stall`.
struct LoaderTimes {
  double disk = 0;       // waiting for bytes that were not in the page cache
  double decode = 0;     // the rest of reading: copying, decompressing, the source's own work
  double normalize = 0;  // standardising
  double idle = 0;       // with nothing to do: every batch that may be read ahead was
  double stall = 0;      // next() waited for a batch
  uint64_t batches = 0;  // read

  LoaderTimes& operator+=(const LoaderTimes& other) {
    disk += other.disk;
    decode += other.decode;
    normalize += other.normalize;
    idle += other.idle;
    stall += other.stall;
    batches += other.batches;
    return *this;
  }
};

class Loader {
 public:
  Loader(std::shared_ptr<const Source> source, Split split, Normalizer normalizer, LoaderOptions options);
  ~Loader();

  int64_t batch_size() const;
  uint64_t samples_per_epoch() const;
  uint64_t batches_per_epoch() const;

  // [control] The next call of next() delivers the batch that starts at `position` (a multiple of batch_size) of
  // `epoch`. Reading ahead goes on across the epoch's end into epoch + 1 when `continuous`.
  void seek(uint64_t epoch, uint64_t position = 0, bool continuous = false);

  // [control] nullopt at the epoch's end; the call after that starts the next epoch when seek() was continuous. A
  // reader's failure is thrown here, in order: every batch before it is delivered first. Where memory ran out
  // (std::bad_alloc, or Error(does_not_fit) of the source), seek() to the batch that did not come and go on.
  std::optional<Batch> next();

  // In the batches delivered so far; once in an epoch, however often seek() has a batch read again.
  uint64_t skipped_samples() const;
  LoaderTimes times() const;  // so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom
