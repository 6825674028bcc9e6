// Points at which memory is released on purpose: `memory.empty_cache_every` and `empty_cache_every_eval` (batches),
// `memory.gc_every` (epoch, steps or pressure). Each release is counted and timed, with the bytes that it freed, for
// the summary.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "config/experiment.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

// The loop calls each member at the point that its name says; the member releases memory where the schedule says so.
// [compute]
class GcPoints {
 public:
  // Called after each release. `what` is "gc" or "empty_cache".
  using Report = std::function<void(const char* what, int64_t returned_bytes, double seconds)>;
  GcPoints(const MemorySection& section, Model& model, const Source& source, at::Device device, Report report);

  void train_batch_done();
  void eval_batch_done();
  void step_done(int64_t step);
  void epoch_done();
  void pressure();  // the machine or the cgroup is short of memory; acts once a second at most

  std::string summary() const;  // "12 flushes (0.1 s, 80.0 MiB), 3 gc points (0.0 s, 12.0 MiB)"
  nlohmann::json json() const;  // {"empty_cache": {"count", "seconds", "returned_bytes"}, "gc": {...}}

 private:
  struct Tally {
    const char* what;
    int64_t count = 0, returned_bytes = 0;
    double seconds = 0.0;
  };
  void run(Tally& tally, const std::function<int64_t()>& give_back);
  void flush();
  void collect(int level);

  const MemorySection& section_;
  Model& model_;
  const Source& source_;
  at::Device device_;
  int64_t gc_steps_ = 0;  // 0: not by steps
  int64_t train_batches_ = 0, eval_batches_ = 0;
  Tally flushes_{.what = "empty_cache"}, collections_{.what = "gc"};
  Report report_;
  std::chrono::steady_clock::time_point last_pressure_{};
};

}  // namespace headroom
