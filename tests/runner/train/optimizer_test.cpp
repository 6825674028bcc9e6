#include "train/optimizer.hpp"

#include <climits>
#include <gtest/gtest.h>

#include "twins.hpp"

namespace headroom {
namespace {

enum class Reached { all, one_rarely };

// `one_rarely`: torch.optim leaves out what has no gradient.
template <class Theirs, class Options>
void expect_equal_steps(const OptimizerSection& section, Options options, Reached reached = Reached::all) {
  Twins twins;
  Optimizer optimizer(section, 0.0, twins.parameters);
  Theirs reference(twins.theirs, options);
  for (int64_t step = 0; step < 6; ++step) {
    twins.give_gradients();
    std::vector<const Parameter*> without;
    if (reached == Reached::one_rarely && step % 3 != 2) {
      twins.theirs[1].mutable_grad().reset();
      without.push_back(&twins.parameters[1]);
    }
    optimizer.step(section.lr, step, without);
    reference.step();
    EXPECT_LT(twins.difference(), 1e-6) << section.name << " after step " << step;
    EXPECT_EQ(optimizer.without_state().empty(), reached == Reached::all || step >= 2);
  }
}

using torch::optim::Adam;
using torch::optim::AdamOptions;
using torch::optim::AdamW;
using torch::optim::AdamWOptions;
using torch::optim::SGD;
using torch::optim::SGDOptions;

TEST(OptimizerAgainstLibTorch, Adam) { expect_equal_steps<Adam>({.name = "adam", .lr = 0.05}, AdamOptions(0.05)); }

TEST(OptimizerAgainstLibTorch, AdamAddsWeightDecayToTheGradient) {
  expect_equal_steps<Adam>({.name = "adam", .lr = 0.05, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6},
                           AdamOptions(0.05).weight_decay(0.1).betas({0.8, 0.95}).eps(1e-6));
}

TEST(OptimizerAgainstLibTorch, AdamWDecaysTheWeights) {
  expect_equal_steps<AdamW>({.name = "adamw", .lr = 0.05, .weight_decay = 0.1}, AdamWOptions(0.05).weight_decay(0.1));
}

TEST(OptimizerAgainstLibTorch, Sgd) { expect_equal_steps<SGD>({.name = "sgd", .lr = 0.05}, SGDOptions(0.05)); }

TEST(OptimizerAgainstLibTorch, SgdWithMomentumAndDecay) {
  expect_equal_steps<SGD>({.name = "sgd", .lr = 0.05, .weight_decay = 0.1, .momentum = 0.9},
                          SGDOptions(0.05).weight_decay(0.1).momentum(0.9));
}

TEST(OptimizerAgainstLibTorch, SgdWithNesterovsMomentum) {
  expect_equal_steps<SGD>({.name = "sgd", .lr = 0.05, .weight_decay = 0.1, .momentum = 0.9, .nesterov = true},
                          SGDOptions(0.05).weight_decay(0.1).momentum(0.9).nesterov(true));
}

using torch::optim::RMSprop;
using torch::optim::RMSpropOptions;

TEST(OptimizerAgainstLibTorch, LeavesOutWhatHasNoGradient) {
  expect_equal_steps<AdamW>({.name = "adamw", .lr = 0.05, .weight_decay = 0.1}, AdamWOptions(0.05).weight_decay(0.1),
                            Reached::one_rarely);
  expect_equal_steps<SGD>({.name = "sgd", .lr = 0.05, .weight_decay = 0.1, .momentum = 0.9},
                          SGDOptions(0.05).weight_decay(0.1).momentum(0.9), Reached::one_rarely);
  expect_equal_steps<RMSprop>({.name = "rmsprop", .lr = 0.05, .weight_decay = 0.1, .momentum = 0.5},
                              RMSpropOptions(0.05).weight_decay(0.1).momentum(0.5), Reached::one_rarely);
}

TEST(OptimizerAgainstLibTorch, Rmsprop) {
  expect_equal_steps<RMSprop>({.name = "rmsprop", .lr = 0.05}, RMSpropOptions(0.05));
}

TEST(OptimizerAgainstLibTorch, RmspropWithMomentumAndDecay) {
  expect_equal_steps<RMSprop>(
      {.name = "rmsprop", .lr = 0.05, .weight_decay = 0.1, .eps = 1e-6, .alpha = 0.9, .momentum = 0.8},
      RMSpropOptions(0.05).weight_decay(0.1).eps(1e-6).alpha(0.9).momentum(0.8));
}

TEST(Optimizer, ScalesLearningRateAndWeightDecayByParameter) {
  Twins twins;
  twins.parameters[0].lr_scale = 0.1;
  twins.parameters[1].weight_decay_scale = 0.0;
  Optimizer optimizer({.name = "adamw", .lr = 0.05, .weight_decay = 0.2}, 0.0, twins.parameters);
  AdamW slow({twins.theirs[0]}, AdamWOptions(0.005).weight_decay(0.2)),
      bare({twins.theirs[1]}, AdamWOptions(0.05).weight_decay(0.0)),
      plain({twins.theirs[2]}, AdamWOptions(0.05).weight_decay(0.2));
  for (int64_t step = 0; step < 5; ++step) {
    twins.give_gradients();
    optimizer.step(0.05, step);
    slow.step(), bare.step(), plain.step();
    EXPECT_LT(twins.difference(), 1e-6) << "after step " << step;
  }
}

TEST(Optimizer, AParameterMayHaveAWeightDecayOfItsOwn) {
  Twins twins;
  twins.parameters[0].weight_decay = 0.0;
  twins.parameters[1].weight_decay = 0.5;
  twins.parameters[1].weight_decay_scale = 7.0;  // of no effect beside it
  Optimizer optimizer({.name = "adamw", .lr = 0.05, .weight_decay = 0.2}, 0.0, twins.parameters);
  AdamW bare({twins.theirs[0]}, AdamWOptions(0.05).weight_decay(0.0)),
      own({twins.theirs[1]}, AdamWOptions(0.05).weight_decay(0.5)),
      plain({twins.theirs[2]}, AdamWOptions(0.05).weight_decay(0.2));
  for (int64_t step = 0; step < 5; ++step) {
    twins.give_gradients();
    optimizer.step(0.05, step);
    bare.step(), own.step(), plain.step();
    EXPECT_LT(twins.difference(), 1e-6) << "after step " << step;
  }
}

// The schedule halves the rate from the third step on: of every parameter.
TEST(Optimizer, AParameterMayHaveALearningRateOfItsOwn) {
  Twins twins;
  twins.parameters[1].lr = 0.002;
  twins.parameters[1].lr_scale = 7.0;  // of no effect beside it
  Optimizer optimizer({.name = "adamw", .lr = 0.05, .weight_decay = 0.2}, 0.0, twins.parameters);
  AdamW own({twins.theirs[1]}, AdamWOptions(0.002).weight_decay(0.2)),
      plain({twins.theirs[0], twins.theirs[2]}, AdamWOptions(0.05).weight_decay(0.2));
  const auto set_lr = [](AdamW& of, double lr) { static_cast<AdamWOptions&>(of.param_groups()[0].options()).lr(lr); };
  for (int64_t step = 0; step < 5; ++step) {
    const double bend = step < 2 ? 1.0 : 0.5;
    set_lr(own, 0.002 * bend), set_lr(plain, 0.05 * bend);
    twins.give_gradients();
    optimizer.step(0.05 * bend, step);
    own.step(), plain.step();
    EXPECT_LT(twins.difference(), 1e-6) << "after step " << step;
  }
}

TEST(Optimizer, LeavesFrozenParametersAloneUntilTheirStep) {
  Twins twins;
  twins.parameters[0].frozen_until_step = 3;
  twins.parameters[1].frozen_until_step = INT64_MAX;
  const at::Tensor late = twins.ours[0].detach().clone(), never = twins.ours[1].detach().clone();
  Optimizer optimizer({.name = "adamw", .lr = 0.05, .weight_decay = 0.1}, 0.0, twins.parameters);
  AdamW reference({twins.theirs[0]}, AdamWOptions(0.05).weight_decay(0.1));
  for (int64_t step = 0; step < 5; ++step) {
    twins.give_gradients();
    optimizer.step(0.05, step);
    if (step < 3) {
      EXPECT_TRUE(twins.ours[0].equal(late));
    } else {
      reference.step();  // its moments begin where training does
      EXPECT_LT((twins.ours[0] - twins.theirs[0]).abs().max().item<double>(), 1e-6);
    }
    EXPECT_TRUE(twins.ours[1].equal(never));
  }
  for (const NamedTensor& named : optimizer.state())
    EXPECT_FALSE(named.name.ends_with("/p1")) << "what is never trained has no state: " << named.name;
}

TEST(Optimizer, LeavesBuffersDerivedAndInertTensorsAlone) {
  Twins twins;
  twins.parameters[0].kind = HR_BUFFER;
  twins.parameters[1].kind = HR_DERIVED;
  twins.parameters[2].inert = true;
  std::vector<at::Tensor> before;
  for (const at::Tensor& tensor : twins.ours) before.push_back(tensor.detach().clone());
  Optimizer optimizer({.name = "adamw", .lr = 0.05, .weight_decay = 0.1}, 0.9, twins.parameters);
  twins.give_gradients();
  optimizer.step(0.05, 0);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(twins.ours[i].equal(before[i]));
  EXPECT_TRUE(optimizer.state().empty());
}

std::vector<std::string> names(Optimizer optimizer) {
  optimizer.make_state();
  std::vector<std::string> list;
  for (const NamedTensor& named : optimizer.state()) list.push_back(named.name);
  return list;
}

TEST(Optimizer, NamesAllItsState) {
  Twins twins;
  twins.parameters.resize(1);
  EXPECT_EQ(names(Optimizer({.name = "adamw"}, 0.0, twins.parameters)),
            (std::vector<std::string>{"exp_avg/p0", "exp_avg_sq/p0", "step/p0"}));
  EXPECT_EQ(names(Optimizer({.name = "sgd", .momentum = 0.5}, 0.9, twins.parameters)),
            (std::vector<std::string>{"momentum/p0", "ema/p0"}));
  EXPECT_TRUE(names(Optimizer({.name = "sgd"}, 0.0, twins.parameters)).empty());
  EXPECT_EQ(names(Optimizer({.name = "rmsprop"}, 0.0, twins.parameters)), std::vector<std::string>{"exp_avg_sq/p0"});
  EXPECT_EQ(names(Optimizer({.name = "rmsprop", .momentum = 0.5}, 0.0, twins.parameters)),
            (std::vector<std::string>{"exp_avg_sq/p0", "momentum/p0"}));
  EXPECT_EQ(names(Optimizer({.name = "lion"}, 0.0, twins.parameters)), std::vector<std::string>{"exp_avg/p0"});
  EXPECT_EQ(names(Optimizer({.name = "lamb"}, 0.0, twins.parameters)),
            (std::vector<std::string>{"exp_avg/p0", "exp_avg_sq/p0", "step/p0"}));
}

TEST(Optimizer, AllocatesNoStateInAStep) {
  Twins twins;
  Optimizer optimizer({.name = "adam"}, 0.9, twins.parameters);
  optimizer.make_state();
  std::vector<const void*> before;
  for (const NamedTensor& named : optimizer.state()) before.push_back(named.tensor.const_data_ptr());
  twins.give_gradients();
  optimizer.step(0.05, 0);
  const auto after = optimizer.state();
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].tensor.const_data_ptr(), before[i]) << after[i].name;
}

TEST(Ema, AveragesAndLendsItsWeightsForAWhile) {
  Twins twins;
  const double decay = 0.75;
  Optimizer optimizer({.name = "sgd", .lr = 0.1}, decay, twins.parameters);
  at::Tensor expected = twins.ours[0].detach().clone();
  for (int64_t step = 0; step < 5; ++step) {
    twins.give_gradients();
    optimizer.step(0.1, step);
    expected = decay * expected + (1.0 - decay) * twins.ours[0].detach();
  }
  const at::Tensor live = twins.ours[0].detach().clone();
  const void* memory = twins.ours[0].const_data_ptr();
  {
    const Optimizer::Averaged averaged(optimizer);
    EXPECT_LT((twins.ours[0].detach() - expected).abs().max().item<double>(), 1e-6);
    EXPECT_GT((twins.ours[0].detach() - live).abs().max().item<double>(), 1e-3);
  }
  EXPECT_TRUE(twins.ours[0].equal(live));
  EXPECT_EQ(twins.ours[0].const_data_ptr(), memory);
  twins.give_gradients();  // and training goes on with the live ones
  optimizer.step(0.1, 5);
  EXPECT_FALSE(twins.ours[0].equal(live));
  expected = decay * expected + (1.0 - decay) * twins.ours[0].detach();
  for (const NamedTensor& named : optimizer.state()) {
    if (named.name != "ema/p0") continue;
    EXPECT_LT((named.tensor - expected).abs().max().item<double>(), 1e-6);
  }
}

TEST(Ema, WithoutItAveragedChangesNothing) {
  Twins twins;
  Optimizer optimizer({}, 0.0, twins.parameters);
  const void* memory = twins.ours[0].const_data_ptr();
  const Optimizer::Averaged averaged(optimizer);
  EXPECT_EQ(twins.ours[0].const_data_ptr(), memory);
}

}  // namespace
}  // namespace headroom
