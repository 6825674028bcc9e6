// A run's state between two windows, to and from a checkpoint: after restore() the run goes on bit-equal under equal
// threads, splits and build.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "data/normalizer.hpp"
#include "metrics/metrics.hpp"
#include "record/checkpoint.hpp"
#include "train/optimizer.hpp"
#include "train/precision.hpp"
#include "train/setup.hpp"

namespace headroom {

// Where the run is. Plain values: everything that is not a tensor.
struct Position {
  int64_t step = 0;             // optimizer steps taken
  int64_t epoch = 0;            // epochs finished
  int64_t finished_step = 0;    // the step at which an epoch, or the run, was last evaluated, judged and saved
  uint64_t samples = 0;         // consumed of the current epoch
  int64_t skipped_windows = 0;  // nothing counted, or not finite under on_nonfinite = "skip"
  uint64_t bad_samples = 0;     // left out by on_bad_sample = "skip"
  std::string judged_by;        // experiment.metric and which way it improves; "": an earlier build did not say
  bool has_best = false;
  double best = 0.0;  // of experiment.metric
  int64_t best_epoch = 0, best_step = 0;
  // For train.early_stop and the plateau schedule: what the last gain of more than min_delta led to, the evaluations
  // since then, the same since the schedule last dropped the rate, and how often it has.
  double improved_to = 0.0;
  int64_t stale_evaluations = 0, plateau_stale = 0, plateau_drops = 0;
  double train_seconds = 0.0;
  bool stopped_early = false;
  int64_t micro_batch = 0, eval_micro_batch = 0;  // in use
  int64_t reserved_bytes = 0;                     // among the runs of the machine, see reserved_bytes_in()
  std::vector<std::string> recompute;             // kinds, in use
  std::optional<LossScale::State> loss_scale;     // of fp16
  Measured measured;                              // of the last finished epoch
};

// What a checkpoint holds of a run: references to where it lives in the loop.
struct RunState {
  const Setup& setup;
  Optimizer& optimizer;
  StepSums& epoch_sums;     // of the current epoch so far
  StepSums& interval_sums;  // since the last row of metrics
  Position& position;
  const Normalizer& normalizer;
};

// Writes a checkpoint, complete or not at all, and moves the links `last` and, with `is_best`, `best`. Tensors on the
// CPU are written from where they lie. Returns its folder. Error(cannot_write). [control], between two windows.
std::filesystem::path save_state(Checkpoints& checkpoints, const RunState& state, const nlohmann::json& log_lengths,
                                 bool is_best);

// Everything but the normalizer, which the loaders need first. Returns the recorded log lengths. Error(bad_input) when
// names or shapes differ from the model's. Whether the run is then the same one: differences_from().
nlohmann::json restore_state(const LoadedCheckpoint& checkpoint, const RunState& state);

// Loads the model alone: its tensors and what it keeps beside them. `use_average`: the EMA weights where the checkpoint
// has them.
void restore_model(const LoadedCheckpoint& checkpoint, Model& model, bool use_average);

}  // namespace headroom
