#include "train/optimizer.hpp"

#include <algorithm>
#include <tuple>

#include "memory/ledger.hpp"
#include "record/checkpoint.hpp"
#include "train/pieces.hpp"
#include "train/plugin_steps.hpp"

namespace headroom {

namespace {

std::vector<at::Tensor> zeros_like_all(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& tensor : tensors)
    zeros.push_back(at::zeros_like(tensor, at::TensorOptions().requires_grad(false)));
  return zeros;
}

// What each of them keeps of a parameter.
bool has_first_moment(const std::string& name) {
  return name == "adam" || name == "adamw" || name == "lion" || name == "lamb";
}
bool has_second_moment(const std::string& name) { return has_first_moment(name) ? name != "lion" : name == "rmsprop"; }
bool has_momentum(const OptimizerSection& section) {
  return (section.name == "sgd" || section.name == "rmsprop") && section.momentum > 0;
}
bool counts_steps(const std::string& name) { return has_first_moment(name) && has_second_moment(name); }
bool needs_scratch(const std::string& name) { return name == "rmsprop" || name == "lion" || name == "lamb"; }

}  // namespace

Optimizer::Optimizer(const OptimizerSection& section, double ema_decay, std::vector<Parameter>& parameters,
                     const OptimizerPlugin* plugin)
    : section_(section), ema_decay_(ema_decay) {
  const OwnerScope scope(Owner::optimizer);
  at::NoGradGuard no_grad;
  for (Parameter& parameter : parameters) {
    if (!parameter.trains()) continue;
    // A rate of its own as a scale: the schedule then moves it in proportion.
    const double lr_scale = parameter.lr > 0 ? parameter.lr / section_.lr : parameter.lr_scale;
    const double decay = parameter.weight_decay.value_or(section_.weight_decay * parameter.weight_decay_scale);
    const auto own = std::tuple(lr_scale, decay, parameter.frozen_until_step);
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return std::tuple(g.lr_scale, g.weight_decay, g.frozen_until_step) == own;
    });
    if (group == groups_.end()) {
      groups_.push_back({.lr_scale = lr_scale,
                         .weight_decay = decay,
                         .frozen_until_step = parameter.frozen_until_step,
                         .parameters = {},
                         .tensors = {},
                         .first_moment = {},
                         .second_moment = {},
                         .steps = {},
                         .momentum = {}});
      group = std::prev(groups_.end());
    }
    group->parameters.push_back(&parameter);
    group->tensors.push_back(*parameter.tensor);
    if (ema_decay_ > 0) {
      averaged_.push_back(&parameter);
      average_.push_back(parameter.tensor->detach().clone());
    }
  }
  if (plugin != nullptr) {
    make_plugin_steps(*plugin);
    return;
  }
  for (Group& group : groups_) make_state(group);
  if (needs_scratch(section_.name)) make_scratch();
}

Optimizer::~Optimizer() = default;

void Optimizer::make_plugin_steps(const OptimizerPlugin& plugin) {
  plugin_steps_ = std::make_unique<PluginSteps>(plugin);
  for (const Group& group : groups_) {
    for (const Parameter* parameter : group.parameters)
      plugin_steps_->add(*parameter, group.lr_scale, group.weight_decay, group.frozen_until_step);
  }
  plugin_steps_->make_scratch();
}

void Optimizer::make_state(Group& group) {
  const std::string& name = section_.name;
  if (has_first_moment(name)) group.first_moment = zeros_like_all(group.tensors);
  if (has_second_moment(name)) group.second_moment = zeros_like_all(group.tensors);
  if (has_momentum(section_)) group.momentum = zeros_like_all(group.tensors);
  if (!counts_steps(name)) return;
  // The fused kernels take the number of steps as a float32 tensor on the parameter's device; lamb reads it here.
  for (const at::Tensor& tensor : group.tensors) {
    const at::Device device = name == "lamb" ? at::Device(at::kCPU) : tensor.device();
    group.steps.push_back(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat)));
  }
}

void Optimizer::make_scratch() {
  const OwnerScope scope(Owner::scratch);
  int64_t largest = 0;
  for (const Group& group : groups_) {
    for (const at::Tensor& tensor : group.tensors) largest = std::max(largest, scratch_elements(tensor));
  }
  if (largest == 0) return;
  scratch_ = at::empty({largest}, groups_.front().tensors.front().options().requires_grad(false));
}

void Optimizer::step(double lr, int64_t step) {
  at::NoGradGuard no_grad;
  if (plugin_steps_) plugin_steps_->step(lr, step);
  for (Group& group : groups_) {
    if (plugin_steps_ || group.frozen_until_step > step) continue;
    std::vector<at::Tensor> gradients;
    gradients.reserve(group.tensors.size());
    for (const Parameter* parameter : group.parameters) gradients.push_back(parameter->tensor->grad());
    step_group(group, gradients, lr * group.lr_scale);
  }
  for (size_t i = 0; i < averaged_.size(); ++i) average_[i].lerp_(*averaged_[i]->tensor, 1.0 - ema_decay_);
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  if (plugin_steps_) state = plugin_steps_->state();
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const std::string& name = group.parameters[i]->name;
      if (!group.first_moment.empty()) state.push_back({"exp_avg/" + name, group.first_moment[i]});
      if (!group.second_moment.empty()) state.push_back({"exp_avg_sq/" + name, group.second_moment[i]});
      if (!group.steps.empty()) state.push_back({"step/" + name, group.steps[i]});
      if (!group.momentum.empty()) state.push_back({"momentum/" + name, group.momentum[i]});
    }
  }
  for (size_t i = 0; i < averaged_.size(); ++i) state.push_back({average_name(averaged_[i]->name), average_[i]});
  return state;
}

// Swaps storage, not values: an evaluation with the averaged weights takes no memory and gives back the same bits.
void Optimizer::swap_average() {
  for (size_t i = 0; i < averaged_.size(); ++i) {
    at::Tensor live = averaged_[i]->tensor->detach();
    averaged_[i]->tensor->set_data(average_[i]);
    average_[i] = live;
  }
}

Optimizer::Averaged::Averaged(Optimizer& optimizer) : optimizer_(optimizer) { optimizer_.swap_average(); }
Optimizer::Averaged::~Averaged() { optimizer_.swap_average(); }

}  // namespace headroom
