// Fills one batch: from positions of an epoch to values in a slot. What the loader's threads do; knows nothing of
// threads.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/cache_session.hpp"
#include "data/loader.hpp"
#include "data/slots.hpp"

namespace headroom {

// What all readers of a loader share. Immutable.
struct BatchPlan {
  std::shared_ptr<const Source> source;
  Split split;
  Normalizer normalizer;
  LoaderOptions options;
  uint64_t samples_per_epoch;
  std::shared_ptr<const KeptSamples> kept;  // NULL: every sample is read
};

struct SkippedSample {
  uint64_t position;  // in its epoch
  std::string sentence;
};

class BatchReader {
 public:
  explicit BatchReader(const BatchPlan& plan) : plan_(plan) {}

  // The batch that starts at `first` of `epoch`, in `slot`. Appends every sample left out to `skipped`.
  // Throws Error that names the sample.
  Batch read(uint64_t epoch, uint64_t first, std::shared_ptr<Slot> slot, std::vector<SkippedSample>& skipped);

  // What the last read() took in the source, and to normalise.
  struct Times {
    double source = 0, normalize = 0;
  };
  Times take_times() { return std::exchange(times_, {}); }

 private:
  bool keeps_samples() const;
  void fill(const Batch& batch, Slot& slot);
  void read_run(const Batch& batch, Slot& slot, size_t first, size_t count);
  void normalize(std::span<const DLTensor> fields);
  void read_one_by_one(Batch& batch, Slot& slot, const Error& problem, std::vector<SkippedSample>& skipped);
  std::string place_of(uint64_t index) const;

  const BatchPlan& plan_;
  Times times_;
  std::vector<bool> missing_;     // of a batch's samples: not in the cache
  std::optional<Reader> reader_;  // opened by the first read, on the thread that reads
};

}  // namespace headroom
