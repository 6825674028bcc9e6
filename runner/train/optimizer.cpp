#include "train/optimizer.hpp"

#include <algorithm>
#include <tuple>

#include "memory/ledger.hpp"
#include "record/checkpoint.hpp"
#include "train/pieces.hpp"
#include "train/plugin_steps.hpp"

namespace headroom {

namespace {

bool is_among(std::span<const Parameter* const> parameters, const Parameter* parameter) {
  return std::ranges::find(parameters, parameter) != parameters.end();
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
                         .momentum = {},
                         .has_state = {}});
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
  for (Group& group : groups_) {
    make_room(group);
    for (size_t i = 0; group.frozen_until_step > 0 && i < group.parameters.size(); ++i) make_state(group, i);
  }
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

void Optimizer::make_room(Group& group) const {
  const size_t count = group.parameters.size();
  if (has_first_moment(section_.name)) group.first_moment.resize(count);
  if (has_second_moment(section_.name)) group.second_moment.resize(count);
  if (has_momentum(section_)) group.momentum.resize(count);
  if (counts_steps(section_.name)) group.steps.resize(count);
  group.has_state.resize(count);
}

void Optimizer::make_state(Group& group, size_t parameter) const {
  if (group.has_state[parameter]) return;
  const OwnerScope scope(Owner::optimizer);
  const at::Tensor& tensor = group.tensors[parameter];
  for (auto* state : {&group.first_moment, &group.second_moment, &group.momentum}) {
    if (!state->empty()) (*state)[parameter] = at::zeros_like(tensor, at::TensorOptions().requires_grad(false));
  }
  // The fused kernels take the number of steps as a float32 tensor on the parameter's device; lamb reads it here.
  const at::Device device = section_.name == "lamb" ? at::Device(at::kCPU) : tensor.device();
  if (!group.steps.empty()) group.steps[parameter] = at::zeros({}, at::TensorOptions(device).dtype(at::kFloat));
  group.has_state[parameter] = 1;
}

void Optimizer::make_state(std::span<const Parameter* const> without) {
  if (plugin_steps_) return;
  at::NoGradGuard no_grad;
  for (Group& group : groups_) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (!is_among(without, group.parameters[i])) make_state(group, i);
    }
  }
}

void Optimizer::make_state_but_of(const std::vector<std::string>& names) {
  std::vector<const Parameter*> without;
  for (const Group& group : groups_) {
    for (const Parameter* parameter : group.parameters) {
      if (std::ranges::find(names, parameter->name) != names.end()) without.push_back(parameter);
    }
  }
  make_state(without);
}

std::vector<std::string> Optimizer::without_state() const {
  std::vector<std::string> names;
  if (plugin_steps_) return names;
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (!group.has_state[i]) names.push_back(group.parameters[i]->name);
    }
  }
  return names;
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

void Optimizer::step(double lr, int64_t step, std::span<const Parameter* const> without) {
  at::NoGradGuard no_grad;
  if (plugin_steps_) {
    plugin_steps_->step(lr, step, without);
  } else {
    step_groups(lr, step, without);
  }
  for (size_t i = 0; i < averaged_.size(); ++i) average_[i].lerp_(*averaged_[i]->tensor, 1.0 - ema_decay_);
}

// The tensors themselves, without those of some parameters.
Optimizer::Group Optimizer::part_of(const Group& group, std::span<const Parameter* const> without) {
  Group part = group;
  const auto leave_out = [&](auto& of_each) {
    if (of_each.empty()) return;
    size_t kept = 0;
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (!is_among(without, group.parameters[i])) of_each[kept++] = of_each[i];
    }
    of_each.resize(kept);
  };
  leave_out(part.tensors);
  leave_out(part.first_moment);
  leave_out(part.second_moment);
  leave_out(part.steps);
  leave_out(part.momentum);
  leave_out(part.has_state);
  leave_out(part.parameters);
  return part;
}

void Optimizer::step_groups(double lr, int64_t step, std::span<const Parameter* const> without) {
  make_state(without);
  for (Group& whole : groups_) {
    if (whole.frozen_until_step > step) continue;
    const bool has_all = without.empty() || std::ranges::none_of(whole.parameters, [&](const Parameter* parameter) {
                           return is_among(without, parameter);
                         });
    Group part = has_all ? Group{} : part_of(whole, without);
    Group& group = has_all ? whole : part;
    if (group.parameters.empty()) continue;
    std::vector<at::Tensor> gradients;
    gradients.reserve(group.tensors.size());
    for (const Parameter* parameter : group.parameters) gradients.push_back(parameter->tensor->grad());
    step_group(group, gradients, lr * group.lr_scale);
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  if (plugin_steps_) state = plugin_steps_->state();
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (plugin_steps_ || !group.has_state[i]) continue;
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

// Swaps storage, not values: an evaluation with the averaged weights needs no memory, and swapping back restores the
// same bits.
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
