// Optimizer, with an optimizer that a plugin offers: faulty_optimizer is plain gradient descent unless told.
#include <climits>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/ledger.hpp"
#include "train/optimizer.hpp"
#include "twins.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PluginOptimizer : public testing::Test {
 protected:
  // The fault begins after `at` updates.
  void choose(const char* fault, int64_t at = 0) {
    TrainSection train;
    train.optimizer.name = "faulty_optimizer";
    train.optimizer_options = toml::table{{"fault", fault}, {"at", at}};
    plugin_ = std::make_unique<OptimizerPlugin>(Library::load(HEADROOM_TEST_PLUGIN_DIR "/faulty_optimizer.so"), train,
                                                *Session::of_process());
  }
  std::unique_ptr<Optimizer> make(double ema_decay = 0.0) {
    return std::make_unique<Optimizer>(OptimizerSection{.name = "faulty_optimizer", .lr = 0.1, .weight_decay = 0.5},
                                       ema_decay, twins_.parameters, plugin_.get());
  }
  std::string problem_of_a_step(Optimizer& optimizer) {
    twins_.give_gradients();
    try {
      optimizer.step(0.1, 0);
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.exit_code())) + ": " + error.what();
    }
    return "";
  }

  Twins twins_;
  std::unique_ptr<OptimizerPlugin> plugin_;
};

TEST_F(PluginOptimizer, StepsAtTheRatesOfTheParameters) {
  choose("none");
  twins_.parameters[0].lr_scale = 0.5;
  twins_.parameters[1].frozen_until_step = 1;
  twins_.parameters[2].lr = 0.2;
  const auto optimizer = make();
  twins_.give_gradients();
  optimizer->step(0.1, 0);
  EXPECT_TRUE(twins_.ours[0].allclose(twins_.theirs[0] - 0.05 * twins_.ours[0].grad()));
  EXPECT_TRUE(twins_.ours[1].equal(twins_.theirs[1]));
  EXPECT_TRUE(twins_.ours[2].allclose(twins_.theirs[2] - 0.2 * twins_.ours[2].grad()));
  optimizer->step(0.1, 1);
  EXPECT_TRUE(twins_.ours[1].allclose(twins_.theirs[1] - 0.1 * twins_.ours[1].grad()));
}

TEST_F(PluginOptimizer, NamesAllItsStateAndMakesNoneInAStep) {
  choose("none");
  twins_.parameters[1].frozen_until_step = INT64_MAX;
  twins_.parameters.resize(2);
  const auto optimizer = make(0.9);
  std::vector<std::string> names;
  std::vector<const void*> before;
  for (const NamedTensor& named : optimizer->state()) {
    names.push_back(named.name);
    before.push_back(named.tensor.const_data_ptr());
  }
  EXPECT_THAT(names, ElementsAre("optimizer/sum/p0", "step/p0", "ema/p0"));
  twins_.give_gradients();
  optimizer->step(0.1, 0);
  const auto after = optimizer->state();
  for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].tensor.const_data_ptr(), before[i]) << names[i];
  EXPECT_TRUE(after[0].tensor.view({4, 3}).equal(twins_.ours[0].grad()));
  EXPECT_EQ(after[1].tensor.item<int64_t>(), 1);
}

TEST_F(PluginOptimizer, GoesOnFromItsState) {
  choose("none");
  const auto optimizer = make(), other = make();
  twins_.give_gradients();
  optimizer->step(0.1, 0);
  const auto from = optimizer->state(), to = other->state();
  for (size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].tensor).copy_(from[i].tensor);
  other->step(0.1, 1);
  EXPECT_TRUE(to[0].tensor.view({4, 3}).allclose(2 * twins_.ours[0].grad()));
  EXPECT_EQ(to[1].tensor.item<int64_t>(), 2);
}

TEST_F(PluginOptimizer, NamesThePluginAndTheParameterOfAFault) {
  const std::pair<const char*, const char*> faults[] = {
      {"throws", "3: [faulty_optimizer] optimizer step 1 failed: it is a bad day; a step must not fail"},
      {"memory", "3: [faulty_optimizer] optimizer step 1 failed: out of memory"},
      {"nan", "3: [faulty_optimizer] optimizer step 1 left element 1 of parameter 'p0' not finite"},
      {"overrun", "3: [faulty_optimizer] a step wrote past the 12 elements of its buffer 'sum' of parameter 'p0'"},
      {"scratch_overrun", "3: [faulty_optimizer] a step wrote past the 3 elements of its scratch"}};
  for (const auto& [fault, sentence] : faults) {
    choose(fault);
    EXPECT_THAT(problem_of_a_step(*make()), HasSubstr(sentence)) << fault;
    for (at::Tensor& tensor : twins_.ours) tensor.detach().zero_();
  }
  choose("nan", /*at=*/5);
  EXPECT_EQ(problem_of_a_step(*make()), "");
}

TEST_F(PluginOptimizer, TakesWhatLiesInOneAlignedPieceOnly) {
  choose("none");
  for (const at::Tensor& odd : {torch::randn({3, 4}).t(), torch::randn(13).narrow(0, 1, 12).view({4, 3})}) {
    twins_.ours[0] = odd.detach().requires_grad_(true);
    try {
      make();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::bad_input);
      EXPECT_THAT(error.what(),
                  HasSubstr("'p0' does not: set experiment.device = \"cpu\", have the model call contiguous()"));
    }
  }
}

}  // namespace
}  // namespace headroom
