// A function of our own on float32 and LibTorch's on the same numbers in float64: results and gradients.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../models/relative_error.hpp"

namespace headroom {

using Tensors = std::vector<at::Tensor>;
using OfTensors = std::function<at::Tensor(const Tensors& inputs)>;

inline void expect_as_libtorch(const Tensors& inputs, const OfTensors& ours, const OfTensors& theirs, double limit,
                               double gradient_limit) {
  Tensors single, exact;
  for (const at::Tensor& input : inputs) {
    single.push_back(input.detach().clone().requires_grad_());
    exact.push_back(input.detach().to(at::kDouble).requires_grad_());
  }
  const at::Tensor found = ours(single), expected = theirs(exact);
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_LE(relative_error(found, expected), limit);
  const at::Tensor above = torch::randn(found.sizes());
  found.backward(above);
  expected.backward(above.to(at::kDouble));
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LE(relative_error(single[i].grad(), exact[i].grad()), gradient_limit) << "of input " << i;
}

}  // namespace headroom
