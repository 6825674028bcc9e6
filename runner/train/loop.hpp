// The training loop. run() is the algorithm, top to bottom; members are what it works with.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "memory/growth.hpp"
#include "record/checkpoint.hpp"
#include "record/run_log.hpp"
#include "train/differences.hpp"
#include "train/evaluate.hpp"
#include "train/gc_points.hpp"
#include "train/optimizer.hpp"
#include "train/run_memory.hpp"
#include "train/schedule.hpp"
#include "train/state.hpp"
#include "train/step_watch.hpp"
#include "train/train.hpp"
#include "train/train_step.hpp"

namespace headroom {

struct MemoryPart;

// Trains `setup.model` from where the position stands to the end of the run, and writes checkpoints, metrics and events
// as it goes. One run each: resume() or begin_with(), then run(), then what came of it. [control]
class TrainingLoop {
 public:
  // All but `input` outlive it.
  TrainingLoop(const Setup& setup, LoaderInput input, const RunFolder& folder, RunLog& log, RunMemory& memory);

  // Goes on where the checkpoint was written: weights, optimizer, sums, position and logs are as they were then.
  // Error(bad_input) where it is damaged or of another model.
  void resume(const LoadedCheckpoint& checkpoint);

  // A new run begins with the micro-batch and the recomputation of its plan.
  void begin_with(const PlannedStart& planned);

  // run() saves and returns resumable once so many epochs are done; 0: never.
  void stop_after(int64_t epochs) { until_epoch_ = epochs; }

  // `watch` measures every window. Where it has seen enough, run() saves and returns resumable. It outlives the run.
  void watch_steps(StepWatch* watch) { watch_ = watch; }

  // The algorithm. ok: the run is at its end. resumable or interrupted: a signal, stop_after() or a shortage of memory
  // stopped it, and a checkpoint is saved. Error(diverged), Error(data), Error(does_not_fit), Error(cannot_write).
  Exit run();

  const Position& position() const { return position_; }
  const std::string& metric() const { return metric_; }  // that decides which checkpoint is best
  std::string memory_summary() const;                    // one line: peak, limit, gc points, retries
  nlohmann::json memory_json() const;                    // retries and gc points, for the summary
  LoaderTimes loader_times() const;                      // of all loaders, since this process began
  double seconds() const;                                // since run() began

  // Processes of the run that were killed, and without which the others went on; and those that were started in their
  // place and joined them. `rank`: as launched.
  struct RankChange {
    int rank = 0;
    int64_t step = 0;  // from which they went on
    std::string time;
  };
  const std::vector<RankChange>& lost_ranks() const { return lost_ranks_; }
  const std::vector<RankChange>& returned_ranks() const { return returned_ranks_; }

 private:
  Exit train_to_end();
  bool train_epoch();   // false: stopped by a signal between two windows
  bool train_window();  // one optimizer step; false: the window was skipped, or others took the memory
  uint64_t end_of_window() const;
  bool finish_window(const TrainStep::Gradients& gradients, const std::string& bad_value);  // the same
  std::string bad_value_in(WindowBatches& batches);  // of a window; "" where all are finite
  void end_watched_step(uint64_t first_sample);
  void require_a_step() const;  // at an epoch's end
  void stop_for(const TakenByOthers& taken);
  StepHooks step_hooks();
  void register_rungs();
  RunState state();
  void finish_epoch();
  void save(bool is_best);
  void write_checkpoint(bool is_best);
  std::filesystem::path write_state(Checkpoints& checkpoints, bool is_best);
  void restore(const LoadedCheckpoint& checkpoint);
  void save_when_due();
  bool done() const;
  bool owes_an_evaluation() const;  // it was stopped between its last step and its last evaluation
  int64_t windows_done() const;     // of the current epoch

  // loop_ranks.cpp
  void agree();                                      // between two windows, with the other ranks
  Exit stop_reason() const;                          // ok: none
  uint64_t skipped_samples() const;                  // of all ranks
  std::string first_found(std::string found) const;  // by any rank
  std::optional<StepSums> evaluate_shares(const std::function<bool(int64_t done)>& stop);
  void lend_memory();  // between two epochs
  void report_lent(const std::vector<MemoryPart>& parts, const std::vector<int64_t>& limits);

  // loop_elastic.cpp
  bool outlives_losses();  // from here on
  void go_on_with_those_left();
  void rejoin();
  void take_over();
  void catch_up();
  void hand_over(int64_t transitions);
  std::string state_written_to(Checkpoints& checkpoints);
  void take_state(const LoadedCheckpoint& checkpoint);
  void note_members(const std::vector<bool>& is_new);
  void note_changes();
  void make_loaders();
  void end_with_supervisor() const;
  bool is_in_vain() const;  // what this rank computes: another is lost
  void make_examples();

  // loop_evaluation.cpp
  bool evaluate_epoch();  // false: stopped by a signal, or others took the memory, of this rank or of another
  bool measure_epoch();   // the same, of this rank
  bool is_evaluated() const;
  std::optional<StepSums> evaluate_val();
  double least_gain() const;
  bool compare_with_best();  // true: this evaluation is the best so far
  void judge_by_metric();    // forgets a best that another metric chose
  void judge_plateau();      // drops the rate of the plateau schedule where its patience is at an end
  void judge_early_stop();

  // loop_reports.cpp
  void report_resume(const Differences& differences);
  void report_step(double loss, double lr, double norm);
  void report_epoch();
  void report_memory();
  void report_shortage(const Shortage& shortage, const std::string& action);
  void report_loss_scale(double was, double is);
  std::string without_gain(int64_t evaluations) const;
  void report_plateau(double was, double is);
  void report_early_stop();
  void report_without_gradient();
  void report_not_finite(double loss, double norm, const std::string& bad_value);  // Error(diverged)

  const Setup& setup_;
  const Experiment& experiment_;
  RunLog& log_;
  RunMemory& memory_;
  const LoaderInput input_;
  const std::filesystem::path folder_;
  std::optional<RunFolder> taken_over_;  // its lock, which the first process had
  std::unique_ptr<Loader> train_loader_, val_loader_;
  LoaderTimes earlier_times_;         // of loaders that were replaced
  std::optional<Examples> examples_;  // where there is a val_loader_
  TrainStep step_;
  Retry eval_retry_;
  GcPoints gc_points_;
  StepMeter step_meter_;
  LeakWatch leaks_;
  RungRegistration smaller_batches_, stop_;  // of the pressure ladder
  bool must_stop_ = false;
  Exit agreed_stop_ = Exit::ok;   // what the ranks have agreed on,
  uint64_t skipped_samples_ = 0;  // and told each other
  int64_t until_epoch_ = 0;
  // Of a run that goes on without ranks that are lost; loop_elastic.cpp says what for.
  int64_t transitions_ = 0;
  bool is_measured_ = false;     // the epoch, by this rank
  bool owes_agreement_ = false;  // a step was taken, and not agreed on
  int64_t saved_transitions_ = -1;
  bool saved_best_ = false;
  bool owes_checkpoint_ = false;  // the last one may be half written
  bool is_new_ = false;           // it came back, and holds no state yet
  std::vector<int> members_;      // as launched, when their changes were last noted
  std::vector<int> newly_lost_, newly_back_;
  std::vector<RankChange> lost_ranks_, returned_ranks_;
  pid_t supervisor_ = 0;
  StepWatch* watch_ = nullptr;
  Schedule schedule_;
  MetricSample sample_;  // of the epoch's batches
  Checkpoints checkpoints_;
  Position position_;
  std::optional<int64_t> predicted_peak_bytes_;
  uint64_t bad_before_ = 0;  // samples left out before the run was resumed
  std::string metric_;       // experiment.metric
  bool lower_is_better_ = true;
  bool had_weight_ = false;  // some window had elements that count
  bool looked_for_bad_value_ = false;
  int64_t interval_samples_ = 0;
  std::chrono::steady_clock::time_point run_started_, started_, interval_started_, saved_;
};

}  // namespace headroom
