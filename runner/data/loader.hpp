// Delivers the batches of a split in order, read ahead by threads into a fixed pool of slots.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/normalizer.hpp"
#include "data/order.hpp"
#include "data/sample_cache.hpp"
#include "data/split.hpp"

namespace headroom {

struct LoaderOptions {
  uint64_t seed = 0;
  int64_t batch_size = 1;
  int64_t samples_per_epoch = -1;  // -1: the whole split; less drops the tail (drop_last)
  Shuffle shuffle = Shuffle::sequential;
  Grouping grouping = {};          // of the grouped order
  bool augment = false;            // training
  int num_workers = 0;             // threads that decode at a time; while they wait for the disk, others (up to 8 in
                                   // all, never more than batches are read ahead) read on. 0: read in next()
  int prefetch_factor = 2;         // batches per worker
  int extra_slots = 0;             // batches the consumer holds beside the one it was given last
  bool persistent_workers = true;  // threads and their readers live on between epochs; else they end with the epoch,
                                   // and nothing is read ahead across it
  // on_bad_sample = "skip": a sample that cannot be read is left out, and its batch is shorter; a batch that lost all
  // of them comes with count() 0, so that positions stay arithmetic.
  bool skip_bad_samples = false;
  // Samples go through the sample cache, under this policy. Only where a read does not depend on the sample's key.
  std::optional<CachePolicy> keep_samples = std::nullopt;
};

// Seconds of a loader's life: of its threads together, but for `stall`.
struct LoaderTimes {
  double disk = 0;       // waiting for bytes that were not in the page cache
  double decode = 0;     // the rest of reading: copying, decompressing, the source's own work
  double normalize = 0;  // standardising
  double idle = 0;       // with nothing to do: every batch that may be read ahead was
  double stall = 0;      // next() waited for a batch
  uint64_t batches = 0;  // read

  LoaderTimes& operator+=(const LoaderTimes& other);
};

// How many batches' memory a loader with these options makes.
size_t slot_count(const LoaderOptions& options);

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

  uint64_t skipped_samples() const;  // in the batches delivered so far
  LoaderTimes times() const;         // so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom
