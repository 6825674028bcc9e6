// The optimizer: adam, adamw (LibTorch's fused kernels), sgd, rmsprop, lion, lamb or a plugin's (plugin_steps.hpp) over
// the parameters a model declares, with its per-parameter scales; and EMA. All state exists before the first step; a
// step allocates nothing that outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/optimizer_plugin.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

class PluginSteps;

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Updates the model's own tensors in place. [compute]
class Optimizer {
 public:
  // Makes all state, at zero; with `ema_decay` above 0 an average of the weights, which begins as a copy of them.
  // `plugin`: the optimizer where it is none of ours. It and `parameters` must outlive this.
  Optimizer(const OptimizerSection& section, double ema_decay, std::vector<Parameter>& parameters,
            const OptimizerPlugin* plugin = nullptr);
  ~Optimizer();

  // One update with learning rate `lr` (before each parameter's lr_scale or lr); parameters frozen at `step` stay as
  // they are.
  void step(double lr, int64_t step);

  // "exp_avg/<parameter>", "exp_avg_sq/<parameter>", "step/<parameter>", "momentum/<parameter>", "ema/<parameter>",
  // "optimizer/<buffer of a plugin>/<parameter>": the tensors themselves.
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
  // Parameters that share lr_scale, weight decay and frozen_until_step: one fused call. State that the optimizer has no
  // use for is empty.
  struct Group {
    double lr_scale, weight_decay;
    int64_t frozen_until_step;
    std::vector<Parameter*> parameters;
    std::vector<at::Tensor> tensors, first_moment, second_moment, steps, momentum;
  };
  void make_state(Group& group);
  void make_scratch();
  void make_plugin_steps(const OptimizerPlugin& plugin);
  void swap_average();

  // optimizer_rules.cpp. Gradients are written over: the next window zeroes them.
  using Tensors = std::vector<at::Tensor>;
  void step_group(Group& group, Tensors& gradients, double lr);
  void step_adam(Group& group, Tensors& gradients, double lr);
  void step_sgd(Group& group, Tensors& gradients, double lr);
  void step_rmsprop(Group& group, Tensors& gradients, double lr);
  void step_lion(Group& group, Tensors& gradients, double lr);
  void step_lamb(Group& group, Tensors& gradients, double lr);

  OptimizerSection section_;
  double ema_decay_;
  std::vector<Group> groups_;
  std::unique_ptr<PluginSteps> plugin_steps_;  // nullptr: the rules are ours
  std::vector<Parameter*> averaged_;
  std::vector<at::Tensor> average_;
  at::Tensor scratch_;  // of a piece of a tensor; undefined where no rule needs it
};

}  // namespace headroom
