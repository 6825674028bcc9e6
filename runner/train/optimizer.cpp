#include "train/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "memory/ledger.hpp"

namespace headroom {

namespace {

std::vector<at::Tensor> zeros_like_all(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& tensor : tensors)
    zeros.push_back(at::zeros_like(tensor, at::TensorOptions().requires_grad(false)));
  return zeros;
}

// One norm of all of them, in float64 so that the order of the tensors hardly counts.
double norm_of(const std::vector<at::Tensor>& tensors) {
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors, 2, at::kDouble))).item<double>();
}

// On a CPU LibTorch makes a float64 copy of a whole tensor for its norm.
double norm_in_pieces(const std::vector<at::Tensor>& tensors) {
  constexpr int64_t piece = 1 << 17;
  double squares = 0.0;
  const auto add = [&](const at::Tensor& part) {
    const double norm = at::linalg_vector_norm(part, 2, std::nullopt, false, at::kDouble).item<double>();
    squares += norm * norm;
  };
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() <= piece) {
      add(tensor);
      continue;
    }
    // A norm does not depend on the order: a dense tensor of any layout is seen as flat without a copy.
    const at::Tensor flat =
        tensor.is_non_overlapping_and_dense() ? tensor.as_strided({tensor.numel()}, {1}) : tensor.reshape({-1});
    for (int64_t begin = 0; begin < flat.numel(); begin += piece)
      add(flat.narrow(0, begin, std::min(piece, flat.numel() - begin)));
  }
  return std::sqrt(squares);
}

}  // namespace

Optimizer::Optimizer(const OptimizerSection& section, double ema_decay, std::vector<Parameter>& parameters)
    : section_(section), ema_decay_(ema_decay) {
  const OwnerScope scope(Owner::optimizer);
  at::NoGradGuard no_grad;
  for (Parameter& parameter : parameters) {
    if (!parameter.trains()) continue;
    // A rate of its own as a scale: the schedule then moves it in proportion.
    const double lr_scale = parameter.lr > 0 ? parameter.lr / section_.lr : parameter.lr_scale;
    const auto scales = std::tuple(lr_scale, parameter.weight_decay_scale, parameter.frozen_until_step);
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return std::tuple(g.lr_scale, g.weight_decay_scale, g.frozen_until_step) == scales;
    });
    if (group == groups_.end()) {
      groups_.push_back({.lr_scale = lr_scale,
                         .weight_decay_scale = parameter.weight_decay_scale,
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
  for (Group& group : groups_) {
    if (section_.name == "sgd") {
      if (section_.momentum > 0) group.momentum = zeros_like_all(group.tensors);
      continue;
    }
    group.first_moment = zeros_like_all(group.tensors);
    group.second_moment = zeros_like_all(group.tensors);
    // The fused kernels take the number of steps as a float32 tensor on the parameter's device.
    for (const at::Tensor& tensor : group.tensors)
      group.steps.push_back(at::zeros({}, tensor.options().dtype(at::kFloat).requires_grad(false)));
  }
}

void Optimizer::step(double lr, int64_t step) {
  at::NoGradGuard no_grad;
  for (Group& group : groups_) {
    if (group.frozen_until_step > step) continue;
    std::vector<at::Tensor> gradients;
    gradients.reserve(group.tensors.size());
    for (const Parameter* parameter : group.parameters) gradients.push_back(parameter->tensor->grad());
    if (section_.name == "sgd") {
      step_sgd(group, gradients, lr * group.lr_scale);
    } else {
      step_adam(group, gradients, lr * group.lr_scale);
    }
  }
  for (size_t i = 0; i < averaged_.size(); ++i) average_[i].lerp_(*averaged_[i]->tensor, 1.0 - ema_decay_);
}

void Optimizer::step_adam(Group& group, std::vector<at::Tensor>& gradients, double lr) {
  at::_foreach_add_(group.steps, 1.0);
  const double decay = section_.weight_decay * group.weight_decay_scale;
  // The casts choose the overload whose learning rate is a number and not a tensor.
  const auto update =
      section_.name == "adamw"
          ? static_cast<void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                                 at::TensorList, double, double, double, double, double, bool, bool,
                                 const std::optional<at::Tensor>&, const std::optional<at::Tensor>&)>(
                &at::_fused_adamw_)
          : static_cast<void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                                 at::TensorList, double, double, double, double, double, bool, bool,
                                 const std::optional<at::Tensor>&, const std::optional<at::Tensor>&)>(
                &at::_fused_adam_);
  update(group.tensors, gradients, group.first_moment, group.second_moment, {}, group.steps, lr, section_.beta1,
         section_.beta2, decay, section_.eps, /*amsgrad=*/false, /*maximize=*/false, std::nullopt, std::nullopt);
}

// v = momentum * v + (g + decay * p); p -= lr * (nesterov ? g + momentum * v : v), the first v being g itself: as
// torch.optim.SGD.
void Optimizer::step_sgd(Group& group, std::vector<at::Tensor>& gradients, double lr) {
  const double decay = section_.weight_decay * group.weight_decay_scale;
  // Gradients are written over: the next window zeroes them.
  if (decay != 0) at::_foreach_add_(gradients, group.tensors, decay);
  if (section_.momentum > 0) {
    at::_foreach_mul_(group.momentum, section_.momentum);
    at::_foreach_add_(group.momentum, gradients);
    if (section_.nesterov) {
      at::_foreach_add_(gradients, group.momentum, section_.momentum);
    } else {
      at::_foreach_add_(group.tensors, group.momentum, -lr);
      return;
    }
  }
  at::_foreach_add_(group.tensors, gradients, -lr);
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const std::string& name = group.parameters[i]->name;
      if (!group.first_moment.empty()) {
        state.push_back({"exp_avg/" + name, group.first_moment[i]});
        state.push_back({"exp_avg_sq/" + name, group.second_moment[i]});
        state.push_back({"step/" + name, group.steps[i]});
      }
      if (!group.momentum.empty()) state.push_back({"momentum/" + name, group.momentum[i]});
    }
  }
  for (size_t i = 0; i < averaged_.size(); ++i) state.push_back({"ema/" + averaged_[i]->name, average_[i]});
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

double clip_gradients(std::span<const at::Tensor> gradients, double max_norm) {
  if (gradients.empty()) return 0.0;
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> list(gradients.begin(), gradients.end());
  const double norm = list.front().is_cpu() ? norm_in_pieces(list) : norm_of(list);
  // 1e-6 as in torch.nn.utils.clip_grad_norm_. What is not finite is left for the caller to see.
  if (max_norm > 0 && norm > max_norm && std::isfinite(norm)) at::_foreach_mul_(list, max_norm / (norm + 1e-6));
  return norm;
}

Schedule::Schedule(const ScheduleSection& section, double lr, int64_t steps_per_epoch, int64_t total_steps)
    : section_(section), lr_(lr), steps_per_epoch_(std::max<int64_t>(steps_per_epoch, 1)), total_steps_(total_steps) {
  warmup_steps_ = section.warmup_steps > 0
                      ? section.warmup_steps
                      : std::llround(section.warmup_epochs * static_cast<double>(steps_per_epoch_));
}

double Schedule::at(int64_t step) const {
  // From 1 / warmup_steps on: a first step with a rate of 0 would train nothing.
  if (step < warmup_steps_) return lr_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  if (section_.name == "constant") return lr_;
  const auto since = static_cast<double>(step - warmup_steps_);
  if (section_.name == "step") {
    // In steps, which may be a fraction: step_epochs is a number of epochs.
    const double period = section_.step_epochs * static_cast<double>(steps_per_epoch_);
    return std::max(section_.min_lr, lr_ * std::pow(section_.gamma, std::floor(since / period)));
  }
  const double done = std::min(1.0, since / static_cast<double>(std::max<int64_t>(total_steps_ - warmup_steps_, 1)));
  const double left = section_.name == "cosine" ? 0.5 * (1.0 + std::cos(std::numbers::pi * done)) : 1.0 - done;
  return section_.min_lr + (lr_ - section_.min_lr) * left;
}

}  // namespace headroom
