// The optimizer and the average of the weights (EMA). The rules are adam and adamw (LibTorch's fused kernels), sgd,
// rmsprop, lion and lamb, or a plugin's (plugin_steps.hpp). It works on the parameters that a model declares, with a
// scale for each. What no gradient has reached has no state, and a step leaves it as it is, as in torch.optim.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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
  // Makes the state of a plugin's optimizer, and of parameters that are frozen at first: no later step is to need what
  // the first did not. With `ema_decay` above 0 it also keeps an average of the weights, which begins as a copy of
  // them. `plugin`: a plugin's optimizer, or NULL for a built-in rule. `plugin` and `parameters` must outlive this.
  Optimizer(const OptimizerSection& section, double ema_decay, std::vector<Parameter>& parameters,
            const OptimizerPlugin* plugin = nullptr);
  ~Optimizer();

  // Makes the state, set to zero, that a step needs and that is not there yet. `without`: parameters that the step
  // leaves as they are, because they have no gradient. Where memory runs out the rest is made by the next call.
  void make_state(std::span<const Parameter* const> without = {});
  // Of all but the parameters of these names, of which a checkpoint has none.
  void make_state_but_of(const std::vector<std::string>& names);
  // The names of parameters without state: no gradient has reached them.
  std::vector<std::string> without_state() const;

  // One update with learning rate `lr` (before each parameter's lr_scale or lr); parameters frozen at `step`, and those
  // of `without`, stay as they are. Allocates nothing that outlives it where make_state(without) was called before.
  void step(double lr, int64_t step, std::span<const Parameter* const> without = {});

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
  // Parameters that share lr_scale, weight decay and frozen_until_step, and are updated by one fused call. State that
  // the rule does not use is empty; that of a parameter without state is undefined.
  struct Group {
    double lr_scale, weight_decay;
    int64_t frozen_until_step;
    std::vector<Parameter*> parameters;
    std::vector<at::Tensor> tensors, first_moment, second_moment, steps, momentum;
    std::vector<char> has_state;  // of each parameter
  };
  void make_room(Group& group) const;
  void make_state(Group& group, size_t parameter) const;
  static Group part_of(const Group& group, std::span<const Parameter* const> without);
  void make_scratch();
  void make_plugin_steps(const OptimizerPlugin& plugin);
  void step_groups(double lr, int64_t step, std::span<const Parameter* const> without);  // by the built-in rules
  void swap_average();

  // The built-in rules, in optimizer_rules.cpp. They overwrite the gradients, which the next window zeroes anyway.
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
  std::unique_ptr<PluginSteps> plugin_steps_;  // nullptr: a built-in rule
  std::vector<Parameter*> averaged_;
  std::vector<at::Tensor> average_;
  at::Tensor scratch_;  // for a piece of a tensor; undefined where the rule needs none
};

}  // namespace headroom
