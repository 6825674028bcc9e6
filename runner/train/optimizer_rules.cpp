// What one step of each optimizer does to a group of parameters and to their state.

#include <cmath>

#include "train/optimizer.hpp"
#include "train/pieces.hpp"

namespace headroom {

void Optimizer::step_group(Group& group, Tensors& gradients, double lr) {
  const std::string& name = section_.name;
  if (name == "sgd") {
    step_sgd(group, gradients, lr);
  } else if (name == "rmsprop") {
    step_rmsprop(group, gradients, lr);
  } else if (name == "lion") {
    step_lion(group, gradients, lr);
  } else if (name == "lamb") {
    step_lamb(group, gradients, lr);
  } else {
    step_adam(group, gradients, lr);
  }
}

void Optimizer::step_adam(Group& group, Tensors& gradients, double lr) {
  at::_foreach_add_(group.steps, 1.0);
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
         section_.beta2, group.weight_decay, section_.eps, /*amsgrad=*/false, /*maximize=*/false, std::nullopt,
         std::nullopt);
}

// v = momentum * v + (g + decay * p); p -= lr * (nesterov ? g + momentum * v : v), the first v being g itself: as
// torch.optim.SGD.
void Optimizer::step_sgd(Group& group, Tensors& gradients, double lr) {
  if (group.weight_decay != 0) at::_foreach_add_(gradients, group.tensors, group.weight_decay);
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

// With g + decay * p for g: s = alpha * s + (1 - alpha) * g^2; v = momentum * v + g / (sqrt(s) + eps); p -= lr * v: as
// torch.optim.RMSprop.
void Optimizer::step_rmsprop(Group& group, Tensors& gradients, double lr) {
  using at::Tensor;
  const double alpha = section_.alpha, momentum = section_.momentum, decay = group.weight_decay;
  const auto average = [&](const Tensor& root, const Tensor& p, const Tensor& g, const Tensor& s) {
    if (decay != 0) g.add_(p, decay);
    s.mul_(alpha).addcmul_(g, g, 1.0 - alpha);
    Tensor out = root;
    at::sqrt_out(out, s).add_(section_.eps);
  };
  for (size_t i = 0; i < group.tensors.size(); ++i) {
    if (group.momentum.empty()) {
      in_pieces(
          scratch_,
          [&](const Tensor& root, const Tensor& p, const Tensor& g, const Tensor& s) {
            average(root, p, g, s);
            p.addcdiv_(g, root, -lr);
          },
          group.tensors[i], gradients[i], group.second_moment[i]);
    } else {
      in_pieces(
          scratch_,
          [&](const Tensor& root, const Tensor& p, const Tensor& g, const Tensor& s, const Tensor& v) {
            average(root, p, g, s);
            v.mul_(momentum).addcdiv_(g, root);
            p.add_(v, -lr);
          },
          group.tensors[i], gradients[i], group.second_moment[i], group.momentum[i]);
    }
  }
}

// p -= lr * (sign(beta1 * m + (1 - beta1) * g) + decay * p), then m = beta2 * m + (1 - beta2) * g: Chen et al. 2023.
void Optimizer::step_lion(Group& group, Tensors& gradients, double lr) {
  using at::Tensor;
  const double decay = group.weight_decay;
  for (size_t i = 0; i < group.tensors.size(); ++i) {
    in_pieces(
        scratch_,
        [&](const Tensor& sign, const Tensor& p, const Tensor& g, const Tensor& m) {
          sign.copy_(m).mul_(section_.beta1).add_(g, 1.0 - section_.beta1).sign_();
          if (decay != 0) p.mul_(1.0 - lr * decay);
          p.add_(sign, -lr);
          m.mul_(section_.beta2).add_(g, 1.0 - section_.beta2);
        },
        group.tensors[i], gradients[i], group.first_moment[i]);
  }
}

// Adam's step u with decay * p added to it, p -= lr * |p| / |u| * u for each tensor: You et al. 2020. The ratio is 1
// where a norm is 0.
void Optimizer::step_lamb(Group& group, Tensors& gradients, double lr) {
  using at::Tensor;
  at::_foreach_add_(group.steps, 1.0);
  const double decay = group.weight_decay;
  for (size_t i = 0; i < group.tensors.size(); ++i) {
    const double steps = group.steps[i].item<double>();
    const double first_left = 1.0 - std::pow(section_.beta1, steps);
    const double second_left = 1.0 - std::pow(section_.beta2, steps);
    in_pieces(
        scratch_,
        [&](const Tensor& root, const Tensor& p, const Tensor& g, const Tensor& m, const Tensor& s) {
          m.mul_(section_.beta1).add_(g, 1.0 - section_.beta1);
          s.mul_(section_.beta2).addcmul_(g, g, 1.0 - section_.beta2);
          Tensor out = root, u = g;
          at::sqrt_out(out, s).div_(std::sqrt(second_left)).add_(section_.eps);
          at::div_out(u, m, root).div_(first_left);
          if (decay != 0) u.add_(p, decay);
        },
        group.tensors[i], gradients[i], group.first_moment[i], group.second_moment[i]);
  }
  const std::vector<double> of_weights = norm_of_each(group.tensors), of_updates = norm_of_each(gradients);
  for (size_t i = 0; i < group.tensors.size(); ++i) {
    const double ratio = of_weights[i] > 0 && of_updates[i] > 0 ? of_weights[i] / of_updates[i] : 1.0;
    group.tensors[i].add_(gradients[i], -lr * ratio);
  }
}

}  // namespace headroom
