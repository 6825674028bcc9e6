// The roll-out as one autograd function against the same steps through LibTorch's own operations and autograd.
#include "lstm_rollout.hpp"

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr int64_t steps = 7, features = 5, joints = 4, hidden = 6;

struct RolloutCase {
  int64_t layers, batch;
  StateRule rule;
};

at::Tensor step_by_step(const at::Tensor& by_step, at::Tensor state, const LstmWeights& weights,
                        const StateRule& rule) {
  const size_t layers = weights.layers.size() / 4;
  const int64_t batch = state.size(0);
  std::vector<at::Tensor> hidden_state(layers, torch::zeros({batch, hidden}, by_step.options())), cell = hidden_state;
  std::vector<at::Tensor> states;
  for (int64_t step = 0; step < by_step.size(0); ++step) {
    at::Tensor top = torch::cat({by_step[step], state}, 1);
    for (size_t l = 0; l < layers; ++l) {
      const at::Tensor* w = &weights.layers[4 * l];
      std::tie(hidden_state[l], cell[l]) = at::lstm_cell(top, {hidden_state[l], cell[l]}, w[0], w[1], w[2], w[3]);
      top = hidden_state[l];
    }
    const at::Tensor output =
        torch::linear(torch::leaky_relu(top, 0.01), weights.out_weight, weights.out_bias) * weights.output_scale;
    states.push_back(state = rule.next(state, output, step));
  }
  return torch::stack(states, 0);
}

double error_of(const at::Tensor& value, const at::Tensor& expected) {
  return ((value - expected).abs().max() / expected.abs().max()).item<double>();
}

// All tensors that take a gradient.
struct Inputs {
  at::Tensor by_step, initial;
  LstmWeights weights;

  Inputs(const RolloutCase& which, at::ScalarType type) {
    const auto& [layers, batch, rule] = which;
    const auto random = [&](at::IntArrayRef shape) {
      return (0.4 * torch::randn(shape, at::kDouble)).to(type).requires_grad_();
    };
    torch::manual_seed(2);
    by_step = random({steps, batch, features});
    initial = random({batch, joints});
    for (int64_t l = 0; l < layers; ++l) {
      const int64_t in = l == 0 ? features + joints : hidden;
      for (const at::Tensor& weight :
           {random({4 * hidden, in}), random({4 * hidden, hidden}), random({4 * hidden}), random({4 * hidden})})
        weights.layers.push_back(weight);
    }
    const int64_t outputs = rule.two_halves ? 2 * joints : joints;
    weights.out_weight = random({outputs, hidden});
    weights.out_bias = random({outputs});
    weights.output_scale = 0.7;
  }
  std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> tensors = {by_step, initial, weights.out_weight, weights.out_bias};
    tensors.insert(tensors.end(), weights.layers.begin(), weights.layers.end());
    return tensors;
  }
};

class LstmRollout : public testing::TestWithParam<RolloutCase> {
 protected:
  void compare(at::ScalarType type, double tolerance) const {
    const StateRule& rule = GetParam().rule;
    const Inputs ours(GetParam(), type), theirs(GetParam(), at::kDouble);
    ASSERT_TRUE(rolls_out_lstm(ours.by_step));
    const at::Tensor states = roll_out_lstm(ours.by_step, ours.initial, ours.weights, rule),
                     expected = step_by_step(theirs.by_step, theirs.initial, theirs.weights, rule);
    EXPECT_LE(error_of(states, expected), tolerance);
    const at::Tensor above = torch::randn(states.sizes(), at::kDouble);
    states.backward(above.to(type));
    expected.backward(above);
    const auto got = ours.all(), wanted = theirs.all();
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(error_of(got[i].grad(), wanted[i].grad()), 10 * tolerance) << "input " << i;
  }
};

TEST_P(LstmRollout, EqualsTheSameStepsInDouble) { compare(at::kDouble, 1e-13); }
TEST_P(LstmRollout, EqualsTheSameStepsInFloat) { compare(at::kFloat, 1e-6); }

TEST_P(LstmRollout, FeaturesInAnotherOrderTakeTheirGradient) {
  const StateRule& rule = GetParam().rule;
  const Inputs inputs(GetParam(), at::kDouble);
  const auto gradient = [&](const at::Tensor& by_step) {
    const at::Tensor states = roll_out_lstm(by_step, inputs.initial, inputs.weights, rule);
    return torch::autograd::grad({states.square().sum()}, {inputs.by_step}, {}, {}, false, /*allow_unused=*/true)[0];
  };
  const at::Tensor in_order = gradient(inputs.by_step),
                   other = gradient(inputs.by_step.transpose(0, 1).contiguous().transpose(0, 1));
  ASSERT_TRUE(other.defined());
  EXPECT_LE(error_of(other, in_order), 1e-13);
}

// Nothing is kept then, and a step overwrites the one before.
TEST_P(LstmRollout, IsTheSameWithoutGradients) {
  const StateRule& rule = GetParam().rule;
  const Inputs inputs(GetParam(), at::kFloat);
  const at::Tensor kept = roll_out_lstm(inputs.by_step, inputs.initial, inputs.weights, rule);
  const torch::NoGradGuard no_grad;
  const at::Tensor states = roll_out_lstm(inputs.by_step, inputs.initial, inputs.weights, rule);
  EXPECT_LE(error_of(states, kept), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Rules, LstmRollout,
                         testing::Values(RolloutCase{1, 3, {joints, 0, false, true}},
                                         RolloutCase{2, 16, {joints, 0, false, true}},
                                         RolloutCase{2, 3, {joints, 0, false, false}},
                                         RolloutCase{3, 1, {joints, 3, true, false}},
                                         RolloutCase{1, 3, {joints, 0, true, false}}),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace headroom
