// Delivers the batches of a split in order. Threads read ahead into a pool of slots.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/loader_options.hpp"
#include "data/normalizer.hpp"
#include "data/split.hpp"

namespace headroom {

// One loader batch. Its memory goes back to the pool when the last copy of `hold` is destroyed, which may be after the
// loader. A consumer that holds more than 1 + extra_slots batches makes the pool grow, and never deadlocks.
struct Batch {
  uint64_t epoch = 0;
  uint64_t first = 0;            // position of its first sample in the epoch's order
  std::vector<uint64_t> index;   // source indices
  std::vector<uint64_t> key;     // hr_sample_key(seed, split, augment ? epoch : 0, index)
  std::vector<DLTensor> fields;  // in the order of source.fields(), shape [count, ...]; shapes live in `hold`
  std::shared_ptr<const void> hold;
  uint64_t count() const { return index.size(); }
};

// Where a loader's time went, in seconds: summed over its threads, except for `stall`.
struct LoaderTimes {
  double disk = 0;       // waiting for bytes that were not in the page cache
  double decode = 0;     // the rest of reading: copying, decompressing, the source's own work
  double normalize = 0;  // standardising
  double idle = 0;       // every batch that may be read ahead was read
  double stall = 0;      // of the consumer, in next()
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
  // What was spent since an earlier reading of the same loaders.
  LoaderTimes operator-(const LoaderTimes& before) const {
    return {disk - before.disk, decode - before.decode, normalize - before.normalize,
            idle - before.idle, stall - before.stall,   batches - before.batches};
  }
};

class Loader {
 public:
  // Starts no thread: the first seek() or next() does. Error(bad_input) where batch_size is below 1.
  Loader(std::shared_ptr<const Source> source, Split split, Normalizer normalizer, LoaderOptions options);
  ~Loader();

  int64_t batch_size() const;
  uint64_t samples_per_epoch() const;
  uint64_t batches_per_epoch() const;

  // The next call of next() delivers the batch that starts at `position`, a multiple of batch_size, of `epoch`.
  // `continuous`: reading ahead goes on into the next epoch. Drops what was read ahead. Error(does_not_fit) where a
  // thread cannot be started. [control]
  void seek(uint64_t epoch, uint64_t position = 0, bool continuous = false);

  // The next batch; nullopt at the epoch's end. The call after that begins the next epoch where seek() was continuous.
  // What a reader threw is thrown here, after all batches before it. Where that is for want of memory (std::bad_alloc,
  // or Error(does_not_fit) of the source) the loader goes on after a seek() to the batch that failed. [control]
  std::optional<Batch> next();

  // Samples left out of the batches delivered so far. One that seek() has read again is counted once in its epoch.
  uint64_t skipped_samples() const;
  LoaderTimes times() const;  // so far; [any]

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom
