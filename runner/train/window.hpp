// One window: batch_size x gradient_accumulation_steps consecutive samples, one optimizer step. Gradients are sums over
// samples until divide() divides once by the window's weight, so any split into batches and micro-batches gives the
// same gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/loader.hpp"
#include "metrics/metrics.hpp"
#include "plugins/torch_model.hpp"
#include "train/gradient_check.hpp"
#include "train/gradient_reduction.hpp"
#include "train/micro_batches.hpp"
#include "train/window_gradients.hpp"

namespace headroom {

// The loader's batches of one window, from its first sample to its end.
// [compute] `loader` outlives it, and nobody else reads from it meanwhile.
class WindowBatches {
 public:
  // Samples [first, end) of `epoch`, counted in the epoch's order; the loader stands at `first`.
  WindowBatches(Loader& loader, uint64_t epoch, uint64_t first, uint64_t end)
      : loader_(loader), epoch_(epoch), first_(first), end_(end), at_(first) {}

  // nullopt at the window's end. What runs out of memory is read again.
  std::optional<Batch> next(Retry& retry) {
    if (at_end()) return std::nullopt;
    const PhaseScope waiting(StepPhase::wait);
    auto batch = read_batch(
        retry, [&] { return loader_.next(); }, [&] { seek(at_); });
    advance();
    return batch;
  }

  // The same, but where memory runs out that is thrown.
  std::optional<Batch> next() {
    if (at_end()) return std::nullopt;
    auto batch = loader_.next();
    advance();
    return batch;
  }

  // Whether next() has returned the last batch.
  bool at_end() const { return at_ >= end_; }

  // To the window's first sample, and behind its last.
  void rewind() { seek(at_ = first_); }
  void skip() { seek(at_ = end_); }

 private:
  void advance() { at_ = std::min(end_, at_ + static_cast<uint64_t>(loader_.batch_size())); }
  void seek(uint64_t sample) { loader_.seek(epoch_, sample, /*continuous=*/true); }

  Loader& loader_;
  const uint64_t epoch_, first_, end_;
  uint64_t at_;
};

class Window {
 public:
  // Runs the micro-batches of `retry`. `group`: the processes that share each window, and all gradients are made here;
  // NULL: this one alone.
  Window(Model& model, at::Device device, at::ScalarType dtype, Retry& retry, OutputMetrics outputs = {},
         RankGroup* group = nullptr);

  // Gradients and sums to zero; what was sent to other ranks already stays. Losses are multiplied by `loss_scale`
  // before backward.
  void begin(double loss_scale = 1.0);
  // Forward and backward, micro-batch by micro-batch; what runs out of memory in forward is repeated. false: memory ran
  // out where gradients were being added, and the window must begin again with its first batch (all else is restored).
  // `is_last`: of the window.
  [[nodiscard]] bool add(const Batch& batch, int64_t step, bool want_outputs = false, bool is_last = false);
  // Divides the gradients by the weight and the loss scale. Returns the weight; 0 means nothing counted and no step
  // must be taken. Error(plugin) where it is below 0, and where the first windows that count give no gradient.
  double divide();
  // Of the gradients as divide() left them.
  double norm() const { return norm_; }

  // Buffers, generators and the plugin's state as they were at begin(), before the window begins again.
  void restore() { snapshot_.restore(); }

  const StepSums& sums() const { return sums_; }
  StepSums& sums() { return sums_; }
  // Before divide(), where this window is the share of one process of several: `add_up` makes them those of all.
  template <class AddUp>
  void replace_sums(AddUp&& add_up) {
    counted_here_ = sums_.weight() > 0;
    add_up(sums_);
  }
  const GradientCheck& check() const { return check_; }
  // In the order of parameters. Of several processes also those of parameters that the window has not reached, zero.
  std::vector<at::Tensor> gradients() const;
  std::span<Parameter* const> trainable() const { return trainable_; }
  // GradientCheck's, of this process's share of the window, and those of all shares. What is then not reached has no
  // gradient, and the optimizer leaves it out.
  std::string reached() const { return check_.reached(); }
  void note_reached(std::span<const std::string> of_all_shares);
  std::span<const Parameter* const> unreached() const { return unreached_; }
  GradientReduction* reduction() { return reduction_.get(); }  // NULL without a group
  // Of trainable parameters that `step` leaves unfrozen.
  void thaw(int64_t step);

 private:
  StepResult run_forward(const MicroBatchTensors& tensors, int64_t step, bool want_outputs);
  void run_backward(const StepResult& result, bool is_last);
  void add_gradients(const at::Tensor& loss);
  PassEnd add_micro_batch(const Batch& batch, int64_t first, int64_t count, int64_t step, bool want_outputs,
                          bool is_last);

  Model& model_;
  at::Device device_;
  at::ScalarType dtype_;
  Retry& retry_;
  std::vector<Parameter*> trainable_;
  // One of them: of several processes, or of one.
  std::unique_ptr<GradientReduction> reduction_;
  std::unique_ptr<WindowGradients> gradients_;
  std::vector<const Parameter*> unreached_;
  GradientCheck check_;
  StepSums sums_;
  double loss_scale_ = 1.0, norm_ = 0.0;
  bool counted_here_ = true;  // false: of all processes' shares this one had nothing that counts
  ForwardSnapshot snapshot_;  // of when the window began
};

}  // namespace headroom
