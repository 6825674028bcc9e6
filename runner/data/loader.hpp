// Delivers the batches of a split in order. Threads read ahead into a pool of slots.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/normalizer.hpp"
#include "data/order.hpp"
#include "data/sample_cache.hpp"
#include "data/share.hpp"
#include "data/slots.hpp"
#include "data/split.hpp"

namespace headroom {

inline constexpr int64_t most_disk_ahead_bytes = 16 << 20;

// How a loader reads, and how far ahead. The functions below (loader_options.cpp) compute the numbers of batches and
// threads that follow.
struct LoaderOptions {
  uint64_t seed = 0;
  int64_t batch_size = 1;
  Share share = {};                // of every batch, that this loader delivers; positions stay those of whole batches
  int64_t samples_per_epoch = -1;  // -1: the whole split; fewer drop the end of it (drop_last)
  int64_t epochs = -1;             // how many will be asked for: nothing is read ahead after them; -1: not known
  Shuffle shuffle = Shuffle::sequential;
  Grouping grouping = {};   // of Shuffle::grouped
  bool augment = false;     // reads are those of training
  int num_workers = 0;      // threads that decode at a time; while they wait for the disk, others (up to 16 in
                            // all) read on. 0: read in next()
  int prefetch_factor = 2;  // batches per worker that are read ahead,
  int64_t prefetch_bytes = 256 << 20;                // as far as they fit in this; always one
  int64_t disk_ahead_bytes = most_disk_ahead_bytes;  // of batches beyond that, while reads wait for the disk
  int extra_slots = 0;                               // batches that the consumer holds besides the last one it got
  bool persistent_workers = true;  // threads and their readers live on between epochs; else they end with the epoch,
                                   // and nothing is read ahead across it
  // on_bad_sample = "skip": a sample that cannot be read is left out, and its batch is shorter. A batch that lost all
  // of its samples is delivered with count() 0, so that positions stay arithmetic.
  bool skip_bad_samples = false;
  bool skip_not_finite = false;  // also samples with NaN or infinity; needs skip_bad_samples
  // Samples go through the sample cache, under this policy. Only where a read does not depend on the sample's key.
  std::optional<CachePolicy> keep_samples = std::nullopt;
  PageLock page_lock = {};  // of the memory that batches are read into

  int64_t slot_samples() const { return static_cast<int64_t>(share.most(static_cast<uint64_t>(batch_size))); }
};

// The disk_ahead_bytes of a run's loaders: an eighth of `built_bytes`, what the process held once the model was built,
// and at most most_disk_ahead_bytes. So a slow disk changes little of a small run's peak. The evaluation loader gets
// half as much, because the batches of the training loader stay in memory at the same time.
int64_t disk_ahead_bytes(int64_t built_bytes, bool training);

// How many batches of `batch_bytes` each are read ahead: ready or being read, not counting the one that next() returned
// last.
size_t batches_ahead(const LoaderOptions& options, int64_t batch_bytes);

// The same while readers wait for the disk: more, where batches are small, so that the disk gets many requests at a
// time.
size_t batches_ahead_of_disk(const LoaderOptions& options, int64_t batch_bytes);

// For passes without backward, whose batches may be of any size: small samples in larger batches, because few of them
// at a time leave a processor waiting. Batches are doubled while a loader's share of one stays within 64 samples and 1
// MiB; beyond that nothing was gained where it was measured. As many samples are read ahead as before, but at least a
// batch a reader. `field_bytes`: of one sample.
LoaderOptions in_larger_batches(LoaderOptions options, const std::vector<int64_t>& field_bytes);

// How many batches a loader will deliver; INT64_MAX: not known.
int64_t batches_in_all(const LoaderOptions& options, int64_t batches_per_epoch);

// The most slots that a loader makes, where it has `batches` to deliver in all.
size_t slot_count(const LoaderOptions& options, int64_t batch_bytes, int64_t batches = INT64_MAX);

// How many extra readers may work while others wait for the disk (reader_pool.hpp).
size_t extra_readers(const LoaderOptions& options, size_t batches_ahead_of_disk);

// One loader batch. Its memory goes back to the pool when the last copy of `hold` is destroyed, which may be after the
// loader. A consumer that holds more than 1 + extra_slots batches makes the pool grow, and never deadlocks.
struct Batch {
  uint64_t epoch = 0;
  uint64_t first = 0;            // position of its first sample in the epoch's order; of a share of a shuffled batch,
                                 // whose samples are neighbours in the source, one of that batch's positions
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

  // Waits until next() would return without waiting for a reader, for a consumer that has other things to look after.
  // Returns false once `end` has passed. With num_workers = 0 there is nothing to wait for. [control]
  bool wait_until(std::chrono::steady_clock::time_point end);

  // Samples left out of the batches delivered so far. One that seek() has read again is counted once in its epoch.
  uint64_t skipped_samples() const;
  LoaderTimes times() const;  // so far; [any]

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom
