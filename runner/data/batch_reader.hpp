// Reads one batch: from a position in an epoch to values in a slot. Each thread of a loader has its own BatchReader.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/cache_session.hpp"
#include "data/loader.hpp"
#include "data/slots.hpp"

namespace headroom {

// What all readers of a loader share. Immutable once the loader is made.
struct BatchPlan {
  std::shared_ptr<const Source> source;
  Split split;
  Normalizer normalizer;
  LoaderOptions options;
  uint64_t samples_per_epoch;
  std::shared_ptr<const KeptSamples> kept;  // NULL: every sample is read
};

struct SkippedSample {
  uint64_t position;  // in its epoch; of a share of a shuffled batch its place in the share, as Batch::first counts
  std::string sentence;
};

// Used by one thread at a time.
class BatchReader {
 public:
  // `plan` outlives it.
  explicit BatchReader(const BatchPlan& plan) : plan_(plan) {}

  // Reads the batch that starts at position `first` of `epoch` into `slot`, normalised. Samples that cannot be read are
  // left out and appended to `skipped` where options.skip_bad_samples; else it throws Error that names the sample.
  // std::bad_alloc.
  Batch read(uint64_t epoch, uint64_t first, std::shared_ptr<Slot> slot, std::vector<SkippedSample>& skipped);

  // Seconds of the last read(), in the source and in the normaliser.
  struct Times {
    double source = 0, normalize = 0;
  };
  Times take_times() { return std::exchange(times_, {}); }

 private:
  bool keeps_samples() const;
  void fill(const Batch& batch, Slot& slot);
  void read_run(const Batch& batch, Slot& slot, size_t first, size_t count);
  // BadSample also for NaN and infinity where options.skip_not_finite.
  void read_from_source(std::span<const uint64_t> index, std::span<const uint64_t> key,
                        std::span<const DLTensor> fields);
  void normalize(std::span<const DLTensor> fields);
  void read_one_by_one(Batch& batch, Slot& slot, const Error& problem, std::vector<SkippedSample>& skipped);

  const BatchPlan& plan_;
  Times times_;
  std::vector<bool> missing_;     // for each sample of the batch: it is not in the cache
  std::optional<Reader> reader_;  // opened by the first read, on the thread that reads
};

}  // namespace headroom
