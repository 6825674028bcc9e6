// train/: everything between an Experiment and a trained model. Start here.
//
// train() is a run from its first line to its last. What it knows before there is a model is RunData (run_data.hpp);
// with the model it is a Setup (setup.hpp); neither changes once made. The algorithm is TrainingLoop::run in loop.cpp,
// and each step of it a file of its own: train_step and window (gradients), optimizer, schedule, evaluate, state
// (checkpoints). Beside a run: commands.hpp, parity.hpp and export_script.hpp. Needs LibTorch, though this header does
// not.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

class RankGroup;
struct RunData;
class StepWatch;

// What a plan says of a run that is about to begin.
struct PlannedStart {
  int64_t predicted_peak_bytes = 0;
  int64_t needed_bytes = 0;            // without which it cannot run
  int64_t wanted_bytes = 0;            // the peak, with the sample cache
  double waited_seconds = 0;           // of memory.wait, for memory to measure with
  int64_t micro_batch = 0;             // to begin with, where it is not fixed
  int64_t evaluation_micro_batch = 0;  // likewise, without backward
  std::vector<std::string> recompute;  // kinds, where memory.recompute leaves them open
  std::string line;                    // for the log
};

struct TrainRequest {
  Experiment experiment;
  std::filesystem::path out = "runs";           // a new run goes to out/<experiment.name>/<time>-<id>
  std::optional<std::filesystem::path> resume;  // an existing run folder to go on in
  std::filesystem::path folder_to;              // file that gets the path of the run's folder; empty: none
  bool changed = false;                         // resumes though the mathematics are others than the checkpoint's
  std::vector<std::filesystem::path> plugin_dirs;
  // The processes that share the run, of which this is one; NULL: it is alone.
  std::shared_ptr<RankGroup> group = nullptr;
  int64_t until_epoch = 0;  // saves and stops at the end of that one (Exit::resumable); 0: goes on to its own end
  // Asked of a new run before it claims its memory; there is no model yet. Empty, or nullopt: no plan.
  std::function<std::optional<PlannedStart>(const RunData& data)> plan;
  // Measures the steps of a run that is made for that alone: it ends where this has seen enough (Exit::resumable), and
  // prints and leaves no result. NULL: nobody does.
  StepWatch* watch = nullptr;
};

// Trains, validates, and leaves a run folder; prints the result on stdout. Exit::ok, or resumable / interrupted after a
// signal (checkpoint saved) or `until_epoch`. Throws Error for everything that ends a run early. A run that is not
// resumed because its mathematics are others now is left as it was.
Exit train(const TrainRequest& request);

}  // namespace headroom
