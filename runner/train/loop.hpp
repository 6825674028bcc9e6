// The training loop. run() is the algorithm, top to bottom; members are what it works with.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "memory/leak_watch.hpp"
#include "record/checkpoint.hpp"
#include "record/run_log.hpp"
#include "train/differences.hpp"
#include "train/evaluate.hpp"
#include "train/gc_points.hpp"
#include "train/loss_scale.hpp"
#include "train/recompute.hpp"
#include "train/run_memory.hpp"
#include "train/schedule.hpp"
#include "train/state.hpp"
#include "train/step_meter.hpp"
#include "train/train.hpp"
#include "train/window.hpp"

namespace headroom {

class TrainingLoop {
 public:
  TrainingLoop(Setup& setup, const RunFolder& folder, RunLog& log, RunMemory& memory, Normalizer normalizer);

  void resume(const LoadedCheckpoint& checkpoint);
  void stop_after(int64_t epochs) { until_epoch_ = epochs; }  // run() returns resumable then; 0: never
  void begin_with(const PlannedStart& planned);               // a new run, as its plan says
  Exit run();

  const Position& position() const { return position_; }
  const std::string& metric() const { return metric_; }  // that decides which checkpoint is best
  std::string memory_summary() const;                    // one line: peak, limit, gc points, retries
  nlohmann::json memory_json() const;                    // retries and gc points, for the summary
  LoaderTimes loader_times() const;                      // of all loaders, since this process began
  double seconds() const;                                // since run() began

 private:
  bool train_epoch();   // false: stopped by a signal between two windows
  bool train_window();  // one optimizer step; false: the window was skipped
  struct Gradients {
    double weight = 0.0, norm = 0.0;
  };
  // Of the window up to `end`, divided and clipped; nullopt: others took the memory it needs, and the run must stop.
  std::optional<Gradients> accumulate(uint64_t end);
  bool try_to_accumulate(uint64_t end, Gradients& gradients);  // false: memory ran out, begin again
  bool overflows(const Gradients& gradients);                  // of float16: begin again with a smaller loss scale
  void not_finite(double loss, double norm);
  void stop_for(const TakenByOthers& taken);
  void register_rungs();
  bool evaluate_epoch();  // false: stopped by a signal, or others took the memory
  bool judge();           // is this the best so far?
  void finish_epoch();
  void save(bool is_best);
  void save_when_due();
  bool done() const;
  int64_t windows_done() const;  // of the current epoch

  // loop_reports.cpp
  void report_resume(const Differences& differences);
  void report_step(double loss, double lr, double norm);
  void report_epoch();
  void report_memory();
  void report_shortage(const Shortage& shortage, const std::string& action);

  Setup& setup_;
  const Experiment& experiment_;
  RunLog& log_;
  RunMemory& memory_;
  Normalizer normalizer_;
  Loader train_loader_;
  std::unique_ptr<Loader> val_loader_;
  std::optional<Examples> examples_;  // where there is a val_loader_
  Recompute recompute_;
  Retry retry_, eval_retry_;
  LossScale loss_scale_;
  Window window_;
  Optimizer optimizer_;
  GcPoints gc_points_;
  StepMeter step_meter_;
  LeakWatch leaks_;
  RungRegistration smaller_batches_, stop_;  // of the pressure ladder
  bool must_stop_ = false;
  int64_t until_epoch_ = 0;
  Schedule schedule_;
  StepSums epoch_sums_, interval_sums_;
  MetricSample sample_;  // of the epoch's batches
  Checkpoints checkpoints_;
  Position position_;
  std::optional<int64_t> predicted_peak_bytes_;
  uint64_t bad_before_ = 0;  // samples left out before the run was resumed
  std::string metric_;       // experiment.metric
  bool lower_is_better_ = true;
  int64_t interval_samples_ = 0;
  std::chrono::steady_clock::time_point run_started_, started_, interval_started_, saved_;
};

}  // namespace headroom
