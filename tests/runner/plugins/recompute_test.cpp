// checkpoint(): what is computed again in backward gives the gradients of what is kept.
#include "headroom/sdk/recompute.hpp"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "headroom/sdk/keyed.hpp"

namespace headroom::sdk {
namespace {

constexpr auto kKinds = recomputes("first", "second");

class Recompute : public testing::Test {
 protected:
  Recompute() : x_(at::randn({4, 5})), weight_(at::randn({3, 5})), bias_(at::randn({3})) {
    for (at::Tensor* tensor : {&x_, &weight_, &bias_}) tensor->requires_grad_();
  }

  // A layer with dropout, counted; `params` and the call live no longer than a step's.
  at::Tensor layer(uint64_t mask) {
    std::vector<uint64_t> keys = {7, 8, 9, 10};
    const hr_call native{sizeof(hr_call), HR_TRAIN, 0, keys.size(), keys.data(), kDLCPU, 0, nullptr, mask};
    at::Tensor result = checkpoint(Call(&native, true, true, kKinds.data()), "second",
                                   [this](const Call& call, TensorSpan inputs, TensorSpan params) {
                                     ++runs_;
                                     const at::Tensor inner = at::tanh(at::linear(inputs[0], params[0], params[1]));
                                     inner_ = c10::weak_intrusive_ptr<at::TensorImpl>(inner.getIntrusivePtr());
                                     return dropout(call, "layer"_site, inner * inner, 0.4);
                                   },
                                   {x_}, {weight_, bias_});
    std::ranges::fill(keys, 0);
    return result;
  }
  std::vector<at::Tensor> gradients(const at::Tensor& output) {
    return torch::autograd::grad({(output * output).sum()}, {x_, weight_, bias_});
  }

  at::Tensor x_, weight_, bias_;
  int runs_ = 0;
  c10::weak_intrusive_ptr<at::TensorImpl> inner_{c10::intrusive_ptr<at::TensorImpl>()};
};

TEST_F(Recompute, TheGradientsAreThoseOfWhatIsKept) {
  const at::Tensor kept = layer(0);
  const auto expected = gradients(kept);
  EXPECT_EQ(runs_, 1);
  const at::Tensor recomputed = layer(0b10);
  EXPECT_TRUE(at::equal(recomputed, kept));
  EXPECT_EQ(runs_, 2);
  const auto found = gradients(recomputed);
  EXPECT_EQ(runs_, 3);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
}

TEST_F(Recompute, WhatIsComputedAgainIsNotKept) {
  const at::Tensor kept = layer(0b01);  // another kind
  EXPECT_FALSE(inner_.expired());
  const at::Tensor recomputed = layer(0b10);
  EXPECT_TRUE(inner_.expired());
}

TEST_F(Recompute, OutsideTrainingNothingIsComputedTwice) {
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(layer(0b10).requires_grad());
  EXPECT_EQ(runs_, 1);
}

TEST_F(Recompute, WhatIsFrozenTakesNoGradient) {
  weight_.requires_grad_(false);
  x_.requires_grad_(false);
  const at::Tensor output = layer(0b10);
  const auto found = torch::autograd::grad({output.sum()}, {bias_});
  const auto expected = torch::autograd::grad({layer(0).sum()}, {bias_});
  EXPECT_TRUE(at::equal(found[0], expected[0]));
}

TEST_F(Recompute, AMissingBiasIsMissingBothTimes) {
  const uint64_t key = 1;
  const auto output = [&](uint64_t mask) {
    const hr_call native{sizeof(hr_call), HR_TRAIN, 0, 1, &key, kDLCPU, 0, nullptr, mask};
    const auto linear = [](const Call&, TensorSpan inputs, TensorSpan params) {
      return at::tanh(at::linear(inputs[0], params[1], params[0])) + (inputs[1].defined() ? 1.0 : 0.0);
    };
    return checkpoint(Call(&native, true, true, kKinds.data()), "first", linear, {x_, at::Tensor()},
                      {at::Tensor(), weight_});
  };
  const auto expected = torch::autograd::grad({output(0).sum()}, {x_, weight_});
  const auto found = torch::autograd::grad({output(1).sum()}, {x_, weight_});
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
}

TEST_F(Recompute, AutocastIsAsItWasInForward) {
  const auto under_autocast = [&](uint64_t mask) {
    const AutocastScope scope({.device = at::kCPU, .enabled = true, .dtype = at::kBFloat16});
    return layer(mask);
  };
  const auto expected = gradients(under_autocast(0)), found = gradients(under_autocast(0b10));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
  EXPECT_FALSE(at::equal(expected[1], gradients(layer(0))[1]));  // it does change something
}

at::Tensor simple(const char* kind, detail::Recomputable function, const at::Tensor& x) {
  const uint64_t key = 1;
  const hr_call native{sizeof(hr_call), HR_TRAIN, 0, 1, &key, kDLCPU, 0, nullptr, 1};
  return checkpoint(Call(&native, true, true, kKinds.data()), kind, std::move(function), {x}, {});
}

TEST_F(Recompute, AGradientThatWouldBeLostIsRefused) {
  const at::Tensor output = simple(
      "first", [this](const Call&, TensorSpan inputs, TensorSpan) { return at::linear(inputs[0], weight_); }, x_);
  try {
    output.sum().backward();
    FAIL() << "the gradient of the weight was lost without a word";
  } catch (const Error& problem) {
    EXPECT_STREQ(problem.what(),
                 "checkpoint() of the kind 'first' uses a tensor of shape [3, 5] that takes a gradient and is neither "
                 "among its inputs nor its params");
  }
}

TEST_F(Recompute, AKindThatIsNotDeclaredIsABug) {
  EXPECT_THROW(simple(
                   "third", [](const Call&, TensorSpan inputs, TensorSpan) { return inputs[0]; }, x_),
               Error);
}

TEST_F(Recompute, NoMemoryInBackwardArrivesAsSuch) {
  const at::Tensor output = simple(
      "first",
      [this](const Call&, TensorSpan inputs, TensorSpan) {
        TORCH_CHECK_WITH(OutOfMemoryError, ++runs_ == 1, "no memory");
        return inputs[0] * 2.0;
      },
      x_);
  EXPECT_THROW(output.sum().backward(), c10::OutOfMemoryError);
}

}  // namespace
}  // namespace headroom::sdk
