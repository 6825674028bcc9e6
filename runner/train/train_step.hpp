// One optimizer step on one window of batches: the sum of gradients over micro-batches, divided once, clipped, applied.
// What runs out of memory, or overflows float16, is computed again. The training loop, the probe of a plan and tests
// take their steps here, so that all of them hold the same memory.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "memory/black_box.hpp"
#include "train/optimizer.hpp"
#include "train/pieces.hpp"
#include "train/precision.hpp"
#include "train/rank_window.hpp"
#include "train/recompute.hpp"
#include "train/setup.hpp"
#include "train/window.hpp"

namespace headroom {

struct Position;

// What the owner of a TrainStep hears, and is asked, on the way.
struct StepHooks {
  Retry::Report shortage = [](const Shortage&, const std::string&) {};  // of each that was survived
  std::function<void(double was, double is)> loss_scale = [](double, double) {};
  std::function<void(Phase)> phase = [](Phase) {};                                       // loading, forward
  std::function<bool(const Batch&)> wants_outputs = [](const Batch&) { return false; };  // for the host's metrics
  std::function<void()> batch_done = [] {};
};

// [compute]
class TrainStep {
 public:
  // The first window makes gradients and the optimizer's state, of what it reaches. `setup` outlives it.
  TrainStep(const Setup& setup, StepHooks hooks);

  struct Gradients {
    double loss = 0.0, weight = 0.0,
           norm = 0.0;    // of the window; weight 0: nothing counted, and no step is to be taken
    int64_t samples = 0;  // of all ranks
  };
  // Forward and backward of a window; the gradients are divided by its weight and clipped. TakenByOthers: others hold
  // the memory it needs, and all is as before, the loader too.
  Gradients accumulate(WindowBatches& batches, int64_t step);

  // The optimizer step; the window's sums are added to those of the epoch and of the interval.
  void apply(double lr, int64_t step);

  // Where accumulate() ended because a rank was lost, and this one had done its part: another may have them, and have
  // taken the step. Then this one takes it too. Otherwise all is as before the window.
  std::optional<Gradients> take_prepared() { return std::exchange(prepared_, std::nullopt); }
  // After it, with the group that is left. `scale`: what all of them begin with.
  void begin_anew(const std::optional<LossScale::State>& scale);
  std::optional<LossScale::State> loss_scale() const { return loss_scale_.state(); }

  // In place of apply(): the window is left out, and leaves nothing behind in buffers, generators and the plugin's
  // state.
  void leave_out() { window_.restore(); }

  // Micro-batch, recomputation and loss scale, from and to a checkpoint.
  void restore(const Position& position);
  void note_in(Position& position) const;

  Retry& retry() { return retry_; }
  const Retry& retry() const { return retry_; }
  Recompute& recompute() { return recompute_; }
  const Recompute& recompute() const { return recompute_; }
  Optimizer& optimizer() { return optimizer_; }
  // Parameters that were to be trained and that no gradient has reached so far.
  std::vector<std::string> without_gradient() const { return window_.check().without_gradient(); }
  StepSums& epoch_sums() { return epoch_sums_; }        // of the current epoch so far
  StepSums& interval_sums() { return interval_sums_; }  // since the last row of metrics

 private:
  std::optional<Gradients> try_to_accumulate(WindowBatches& batches, int64_t step);  // nullopt: begin again
  bool overflows(const Gradients& gradients);  // of float16: begin again with a smaller loss scale

  Clipping clipping_;
  StepHooks hooks_;
  Recompute recompute_;
  Retry retry_;
  LossScale loss_scale_;
  Window window_;
  std::optional<RankWindow> ranks_;  // where the run has several processes
  std::optional<Gradients> prepared_;
  Optimizer optimizer_;
  StepSums epoch_sums_, interval_sums_;
};

}  // namespace headroom
