// Steps of rmsprop, lion and lamb against plain loops over numbers.
#include <cmath>
#include <gtest/gtest.h>

#include "train/optimizer.hpp"

namespace headroom {
namespace {

// One parameter's numbers: the weights, their gradients, and what a rule keeps of them.
struct Numbers {
  std::vector<double> p, g, first, second, momentum;
};

double norm(const std::vector<double>& numbers) {
  double squares = 0.0;
  for (const double number : numbers) squares += number * number;
  return std::sqrt(squares);
}

void rmsprop(Numbers& n, const OptimizerSection& o, int64_t) {
  for (size_t i = 0; i < n.p.size(); ++i) {
    const double g = n.g[i] + o.weight_decay * n.p[i];
    n.second[i] = o.alpha * n.second[i] + (1.0 - o.alpha) * g * g;
    n.momentum[i] = o.momentum * n.momentum[i] + g / (std::sqrt(n.second[i]) + o.eps);
    n.p[i] -= o.lr * n.momentum[i];
  }
}

void lion(Numbers& n, const OptimizerSection& o, int64_t) {
  for (size_t i = 0; i < n.p.size(); ++i) {
    const double blend = o.beta1 * n.first[i] + (1.0 - o.beta1) * n.g[i];
    const double sign = blend > 0 ? 1.0 : blend < 0 ? -1.0 : 0.0;
    n.p[i] -= o.lr * (sign + o.weight_decay * n.p[i]);
    n.first[i] = o.beta2 * n.first[i] + (1.0 - o.beta2) * n.g[i];
  }
}

void lamb(Numbers& n, const OptimizerSection& o, int64_t step) {
  const auto t = static_cast<double>(step + 1);
  std::vector<double> update(n.p.size());
  for (size_t i = 0; i < n.p.size(); ++i) {
    n.first[i] = o.beta1 * n.first[i] + (1.0 - o.beta1) * n.g[i];
    n.second[i] = o.beta2 * n.second[i] + (1.0 - o.beta2) * n.g[i] * n.g[i];
    const double first = n.first[i] / (1.0 - std::pow(o.beta1, t)), second = n.second[i] / (1.0 - std::pow(o.beta2, t));
    update[i] = first / (std::sqrt(second) + o.eps) + o.weight_decay * n.p[i];
  }
  const double of_weights = norm(n.p), of_update = norm(update);
  const double ratio = of_weights > 0 && of_update > 0 ? of_weights / of_update : 1.0;
  for (size_t i = 0; i < n.p.size(); ++i) n.p[i] -= o.lr * ratio * update[i];
}

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor all = tensor.detach().contiguous();
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

// Larger than two pieces; of another layout; without a flat view; with a norm of 0; and empty.
std::vector<at::Tensor> many_tensors() {
  torch::manual_seed(2);
  return {at::randn({300'000}, at::kDouble), at::randn({5, 7}, at::kDouble).t(),
          at::randn({6, 8}, at::kDouble).narrow(1, 1, 5), at::zeros({3}, at::kDouble), at::zeros({0, 4}, at::kDouble)};
}

using Rule = void (*)(Numbers& numbers, const OptimizerSection& section, int64_t step);

void expect_as_in_numbers(const OptimizerSection& section, Rule rule) {
  std::vector<at::Tensor> tensors = many_tensors();
  std::vector<Parameter> parameters;
  std::vector<Numbers> numbers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].requires_grad_(true);
    parameters.push_back({.name = "p" + std::to_string(i), .group = "", .tensor = &tensors[i]});
    const std::vector<double> zeros(static_cast<size_t>(tensors[i].numel()));
    numbers.push_back({.p = numbers_of(tensors[i]), .g = {}, .first = zeros, .second = zeros, .momentum = zeros});
  }
  Optimizer optimizer(section, 0.0, parameters);
  for (int64_t step = 0; step < 4; ++step) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].mutable_grad() = at::randn_like(tensors[i], at::TensorOptions().requires_grad(false));
      numbers[i].g = numbers_of(tensors[i].grad());
      rule(numbers[i], section, step);
    }
    optimizer.step(section.lr, step);
    for (size_t i = 0; i < tensors.size(); ++i)
      EXPECT_LT(difference(numbers_of(tensors[i]), numbers[i].p), 1e-11) << "tensor " << i << " after step " << step;
  }
}

TEST(OptimizerRules, Rmsprop) {
  expect_as_in_numbers({.name = "rmsprop", .lr = 0.01, .eps = 1e-4, .alpha = 0.9}, rmsprop);
  expect_as_in_numbers({.name = "rmsprop", .lr = 0.01, .weight_decay = 0.1, .eps = 1e-4, .momentum = 0.8}, rmsprop);
}

TEST(OptimizerRules, Lion) {
  expect_as_in_numbers({.name = "lion", .lr = 0.01, .beta2 = 0.99}, lion);
  expect_as_in_numbers({.name = "lion", .lr = 0.01, .weight_decay = 0.3, .beta1 = 0.8, .beta2 = 0.95}, lion);
}

TEST(OptimizerRules, Lamb) {
  expect_as_in_numbers({.name = "lamb", .lr = 0.01, .eps = 1e-6}, lamb);
  expect_as_in_numbers({.name = "lamb", .lr = 0.01, .weight_decay = 0.3, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6},
                       lamb);
}

// The count of its steps begins where it is trained.
TEST(OptimizerRules, LambBeginsWhereAParameterIsUnfrozen) {
  at::Tensor early = at::full({2}, 3.0, at::kDouble), late = early.clone();
  std::vector<Parameter> parameters = {{.name = "early", .group = "", .tensor = &early},
                                       {.name = "late", .group = "", .frozen_until_step = 5, .tensor = &late}};
  Optimizer optimizer({.name = "lamb"}, 0.0, parameters);
  for (at::Tensor* tensor : {&early, &late}) tensor->requires_grad_(true).mutable_grad() = at::ones({2}, at::kDouble);
  optimizer.step(0.1, 4);
  const std::vector<double> after_one = numbers_of(early);
  EXPECT_EQ(numbers_of(late), std::vector<double>({3.0, 3.0}));
  late.mutable_grad() = at::ones({2}, at::kDouble);
  optimizer.step(0.1, 5);
  EXPECT_EQ(numbers_of(late), after_one);
}

}  // namespace
}  // namespace headroom
