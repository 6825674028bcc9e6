// How a loader reads and how far ahead, and the numbers of batches and threads that follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "data/order.hpp"
#include "data/sample_cache.hpp"
#include "data/share.hpp"

namespace headroom {

inline constexpr int64_t most_disk_ahead_bytes = 16 << 20;

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
  int extra_slots = 0;                               // batches the consumer holds beside the one it was given last
  bool persistent_workers = true;  // threads and their readers live on between epochs; else they end with the epoch,
                                   // and nothing is read ahead across it
  // on_bad_sample = "skip": a sample that cannot be read is left out, and its batch is shorter; a batch that lost all
  // of them comes with count() 0, so that positions stay arithmetic.
  bool skip_bad_samples = false;
  bool skip_not_finite = false;  // and one that holds NaN or infinity; with skip_bad_samples
  // Samples go through the sample cache, under this policy. Only where a read does not depend on the sample's key.
  std::optional<CachePolicy> keep_samples = std::nullopt;

  int64_t slot_samples() const { return static_cast<int64_t>(share.most(static_cast<uint64_t>(batch_size))); }
};

// The disk_ahead_bytes of a run's loaders: an eighth of `built_bytes`, what the process held once the model was built,
// and most_disk_ahead_bytes at most. So a slow disk changes little of a small run's peak. Evaluation's loader takes
// half as much: the batches of training's loader stay in memory beside its own.
int64_t disk_ahead_bytes(int64_t built_bytes, bool training);

// How many batches of `batch_bytes` each are read ahead: ready or being read, beside the one that next() gave last.
size_t batches_ahead(const LoaderOptions& options, int64_t batch_bytes);

// The same while readers wait for the disk: more, where batches are small, so that the disk has many requests at a
// time.
size_t batches_ahead_of_disk(const LoaderOptions& options, int64_t batch_bytes);

// How many batches a loader will deliver; INT64_MAX: not known.
int64_t batches_in_all(const LoaderOptions& options, int64_t batches_per_epoch);

// How many slots a loader makes at most, where it has `batches` to deliver in all.
size_t slot_count(const LoaderOptions& options, int64_t batch_bytes, int64_t batches = INT64_MAX);

// How many extra readers may work while others wait for the disk (reader_pool.hpp).
size_t extra_readers(const LoaderOptions& options, size_t batches_ahead_of_disk);

}  // namespace headroom
