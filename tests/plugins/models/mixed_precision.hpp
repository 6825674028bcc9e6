// What a plugin promises that declares HR_MODEL_BF16 and HR_MODEL_FP16.
#pragma once

#include <functional>
#include <gtest/gtest.h>

#include "model_under_test.hpp"

namespace headroom {

struct OneStep {
  double loss = 0.0;
  at::Tensor gradient;  // of all that trains, one after another
  std::vector<at::ScalarType> outputs;
};

inline OneStep one_step(Model& model, std::optional<at::ScalarType> autocast,
                        const std::function<StepResult(Model&)>& run) {
  model.autocast(autocast);
  std::vector<at::Tensor> gradients;
  for (Parameter& each : model.parameters()) {
    if (each.kind == HR_PARAMETER) each.tensor->requires_grad_(each.trains());
    each.tensor->mutable_grad() = at::Tensor();
  }
  const StepResult result = run(model);
  result.loss_sum.backward();
  for (const Parameter& each : model.parameters()) {
    if (!each.trains()) continue;
    const at::Tensor& gradient = each.tensor->grad();
    EXPECT_TRUE(gradient.defined()) << each.name << " has no gradient";
    if (!gradient.defined()) continue;
    EXPECT_EQ(gradient.scalar_type(), at::kFloat) << each.name;
    gradients.push_back(gradient.flatten());
  }
  OneStep step{result.loss_sum.item<double>(), at::cat(gradients).to(at::kDouble), {}};
  for (const at::Tensor& output : result.outputs) step.outputs.push_back(output.scalar_type());
  return step;
}

// Loss within 1 %, the gradient in the same direction, everything finite; and something did become narrow.
inline void expect_mixed_precision_to_work(Model& model, const std::function<StepResult(Model&)>& run,
                                           std::initializer_list<at::ScalarType> dtypes = {at::kBFloat16, at::kHalf}) {
  const OneStep exact = one_step(model, std::nullopt, run);
  for (const at::ScalarType dtype : dtypes) {
    const OneStep mixed = one_step(model, dtype, run);
    EXPECT_NEAR(mixed.loss, exact.loss, 1e-2 * std::abs(exact.loss)) << dtype;
    const double cosine =
        (mixed.gradient.dot(exact.gradient) / (mixed.gradient.norm() * exact.gradient.norm())).item<double>();
    EXPECT_GT(cosine, 0.99) << dtype;
    EXPECT_NEAR((mixed.gradient.norm() / exact.gradient.norm()).item<double>(), 1.0, 0.05) << dtype;
    EXPECT_FALSE(at::equal(mixed.gradient, exact.gradient)) << dtype;
    EXPECT_EQ(mixed.outputs, exact.outputs) << dtype;
  }
  model.autocast(std::nullopt);
}

}  // namespace headroom
