// The optimizer: adam, adamw (LibTorch's fused kernels) and sgd over the parameters a model declares, with its
// per-parameter scales; EMA; clipping; and the schedule of learning rates. All state exists before the first step; a
// step allocates nothing that outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Updates the model's own tensors in place. [compute]
class Optimizer {
 public:
  // Makes all state, at zero; with `ema_decay` above 0 an average of the weights, which begins as a copy of them.
  // `parameters` must outlive it.
  Optimizer(const OptimizerSection& section, double ema_decay, std::vector<Parameter>& parameters);

  // One update with learning rate `lr` (before each parameter's lr_scale or lr); parameters frozen at `step` stay as
  // they are.
  void step(double lr, int64_t step);

  // "exp_avg/<parameter>", "step/<parameter>", "momentum/<parameter>", "ema/<parameter>": the tensors themselves.
  std::vector<NamedTensor> state() const;

  // While it lives, the model computes with the averaged weights. Does nothing without EMA.
  class Averaged {
   public:
    explicit Averaged(Optimizer& optimizer);
    ~Averaged();
    Averaged(const Averaged&) = delete;
    Averaged& operator=(const Averaged&) = delete;

   private:
    Optimizer& optimizer_;
  };

 private:
  // Parameters that share lr_scale, weight_decay_scale and frozen_until_step: one fused call.
  struct Group {
    double lr_scale, weight_decay_scale;
    int64_t frozen_until_step;
    std::vector<Parameter*> parameters;
    std::vector<at::Tensor> tensors, first_moment, second_moment, steps, momentum;
  };
  void step_adam(Group& group, std::vector<at::Tensor>& gradients, double lr);
  void step_sgd(Group& group, std::vector<at::Tensor>& gradients, double lr);
  void swap_average();

  OptimizerSection section_;
  double ema_decay_;
  std::vector<Group> groups_;
  std::vector<Parameter*> averaged_;
  std::vector<at::Tensor> average_;
};

// Global L2 norm of the gradients in float64; scales them by max_norm / norm where it is larger (max_norm 0: never).
// Returns the norm before, which is not finite when any gradient is not.
double clip_gradients(std::span<const at::Tensor> gradients, double max_norm);

// The learning rate as a function of the step alone, so that resume needs no state.
class Schedule {
 public:
  Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps);
  double at(int64_t step) const;  // of the step about to be taken, counted from 0

 private:
  ScheduleSection section_;
  double lr_;
  int64_t steps_per_epoch_, total_steps_, warmup_steps_;
};

}  // namespace headroom
