// Probes as they would come from a machine of our choice.
#pragma once

#include "plan/plan.hpp"

namespace headroom {

inline constexpr int64_t mib = int64_t{1} << 20;

// 100 MiB between windows, and 10 MiB for every sample of a micro-batch from training on; evaluation adds 5 MiB.
// 5 MiB of it are free lists.
inline Probe straight_probe() {
  Probe probe;
  probe.built_bytes = probe.base_bytes = 100 * mib;
  for (const int64_t size : {1, 2, 8}) {
    ProbePoint point{size, {}};
    for (size_t phase = 0; phase < probe_phases.size(); ++phase)
      point.held_bytes[phase] = (100 + 10 * size + (phase >= 2 ? 5 : 0)) * mib;
    point.least_bytes = point.held_bytes.back() - 5 * mib;
    probe.points.push_back(point);
  }
  probe.train_samples = 1000;
  probe.val_samples = 100;
  probe.field_bytes = {mib};
  return probe;
}

inline RunLoaders readers(int workers, int prefetch) {
  LoaderOptions training;
  training.num_workers = workers;
  training.prefetch_factor = prefetch;
  LoaderOptions evaluation = training;
  evaluation.disk_ahead_bytes = training.disk_ahead_bytes / 2;
  return {training, evaluation};
}

}  // namespace headroom
