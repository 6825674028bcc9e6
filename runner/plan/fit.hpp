// Computes the peak of any setting from the points of a probe. What grows with the micro-batch is a line through the
// last points; what grows with the batch (slots) and with the epoch (metrics.mode = "full") is arithmetic. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "plan/probe.hpp"

namespace headroom {

// The settings that decide a run's memory, besides those that the probe ran with.
struct Setting {
  int64_t batch_size = 1, accumulation = 1, micro_batch = 1;
};

struct Prediction {
  int64_t peak_bytes = 0;
  std::array<int64_t, probe_phases.size()> phase_bytes{};  // U after each phase
  size_t largest_phase = 0;                                // the first that comes within 1 % of the peak
  int64_t slots_bytes = 0;                                 // of all loaders
  int64_t batch_bytes = 0;                                 // one slot
  int64_t chunk_bytes = 0;                                 // decoded chunks that are kept
  int64_t reading_bytes = 0;           // one batch, a decoded chunk for each reader, and what one of them decodes in
  int64_t readers_bytes = 0;           // what the readers of all loaders decode in
  int64_t workers_bytes = 0;           // their child processes
  int64_t work_bytes = 0;              // the peak with one batch at a time, without reading ahead and caches
  int64_t least_bytes = 0;             // the least that it can run with, also returning free lists when memory is short
  int64_t kept_bytes = 0;              // metrics.mode = "full"
  int64_t evaluation_micro_batch = 1;  // without backward, in no more memory than training takes
};

// The loaders of a run. Both exist at the same time: training's keeps its batches during an evaluation.
struct RunLoaders {
  LoaderOptions training, evaluation;
  bool larger_evaluation_batches = false;  // in_larger_batches(), of any batch size
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
  LoaderOptions evaluation_at(int64_t batch_size) const;
  int64_t evaluation_micro_batch(const Setting& setting) const;

  Probe probe_;
  RunLoaders loaders_;
  bool full_;
};

}  // namespace headroom
