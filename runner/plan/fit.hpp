// From a probe's points to the peak of any setting: what grows with the micro-batch is a line through the last points,
// what grows with the batch (slots) and with the epoch (metrics.mode = "full") is arithmetic. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "plan/probe.hpp"

namespace headroom {

// What of a run's settings decides its memory, beside what was probed.
struct Setting {
  int64_t batch_size = 1, accumulation = 1, micro_batch = 1;
};

struct Prediction {
  int64_t peak_bytes = 0;
  std::array<int64_t, probe_phases.size()> phase_bytes{};  // U after each phase
  size_t largest_phase = 0;                                // the first that comes within 1 % of the peak
  int64_t slots_bytes = 0;                                 // of all loaders
  int64_t batch_bytes = 0;                                 // one slot
  int64_t chunk_bytes = 0;                                 // of decoded chunks that are kept
  int64_t decoding_bytes = 0;                              // of them, one for each reader
  int64_t work_bytes = 0;   // the peak with one batch at a time: without what is read ahead and cached
  int64_t least_bytes = 0;  // without which it does not run: free lists given back whenever memory is short, too
  int64_t kept_bytes = 0;   // metrics.mode = "full"
};

// The loaders of a run. Evaluation's stands beside that of training, whose batches wait meanwhile.
struct RunLoaders {
  LoaderOptions training, evaluation;
};

class Fit {
 public:
  // REQUIRES: at least one point. `full`: metrics.mode.
  Fit(Probe probe, const RunLoaders& loaders, bool full);

  Prediction predict(const Setting& setting) const;
  const Probe& probe() const { return probe_; }

 private:
  int64_t held_at(size_t phase, int64_t micro_batch) const;
  int64_t least_at(int64_t micro_batch) const;
  double figure_at(int64_t micro_batch, const std::function<double(size_t)>& y) const;
  int64_t slots_at(int64_t batch_size) const;

  Probe probe_;
  RunLoaders loaders_;
  bool full_;
};

}  // namespace headroom
