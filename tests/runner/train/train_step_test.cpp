#include "train/train_step.hpp"

#include <gmock/gmock.h>

#include "memory/budget.hpp"
#include "train/state.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::StartsWith;

// Windows of 32 samples in batches of 8, of a model that keeps a state and drops at random.
const std::vector<std::string> windows_of_four = {"train.gradient_accumulation_steps=4", "model.options.dropout=0.2",
                                                  "train.clip_norm=1", "data.options.group_size=1",
                                                  "train.precision=fp64"};

struct Steps {
  explicit Steps(StepHooks hooks = {}, std::vector<std::string> words = windows_of_four)
      : trial(words),
        step(*trial, std::move(hooks)),
        loader(trial->data.source, trial->data.splits.train, Normalizer(), trial->loader_options(true)) {
    loader.seek(0, 0, /*continuous=*/true);
  }

  TrainStep::Gradients window(int64_t number) {
    const auto size = static_cast<uint64_t>(trial->data.window_samples()), first = static_cast<uint64_t>(number) * size;
    WindowBatches batches(loader, 0, first, std::min(first + size, trial->data.samples_per_epoch()));
    return step.accumulate(batches, number);
  }

  TrialSetup trial;
  TrainStep step;
  Loader loader;
};

void expect_equal(const TrainStep::Gradients& a, const TrainStep::Gradients& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.samples, b.samples);
}

TEST(TrainStep, TakesTheWindowsSamplesAndNoMore) {
  Steps steps;
  int64_t samples = 0;
  for (int64_t i = 0; i < steps.trial->data.windows_per_epoch(); ++i) samples += steps.window(i).samples;
  EXPECT_EQ(samples, 150);
}

TEST(TrainStep, AppliesWhatItAccumulatedAndPoolsTheSums) {
  Steps steps;
  const at::Tensor before = steps.trial->model->parameters().front().tensor->clone();
  const TrainStep::Gradients first = steps.window(0);
  EXPECT_TRUE(at::equal(before, *steps.trial->model->parameters().front().tensor)) << "accumulating changes no weight";
  steps.step.apply(0.1, 0);
  EXPECT_FALSE(at::equal(before, *steps.trial->model->parameters().front().tensor));
  const TrainStep::Gradients second = steps.window(1);
  steps.step.apply(0.1, 1);
  EXPECT_EQ(steps.step.epoch_sums().weight(), first.weight + second.weight);
  const double pooled = (first.loss * first.weight + second.loss * second.weight) / (first.weight + second.weight);
  EXPECT_NEAR(steps.step.epoch_sums().loss(), pooled, 1e-12);
  steps.step.interval_sums().zero();
  EXPECT_EQ(steps.step.epoch_sums().weight(), first.weight + second.weight) << "each has sums of its own";
}

TEST(TrainStep, ClipsByValue) {
  Steps steps({}, {"train.clip_value=0.001"});
  EXPECT_GT(steps.window(0).norm, 0.001) << "of before";
  double largest = 0.0;
  for (const Parameter& parameter : steps.trial->model->parameters()) {
    if (parameter.trains()) largest = std::max(largest, parameter.tensor->grad().abs().max().item<double>());
  }
  EXPECT_FLOAT_EQ(static_cast<float>(largest), 0.001F);
}

TEST(TrainStep, AWindowThatOthersTookTheMemoryOfBeginsAgainLater) {
  Steps undisturbed;
  Steps* at_work = nullptr;
  int batches = 0;
  Steps disturbed({.wants_outputs =
                       [&](const Batch&) {
                         if (++batches == 2) at_work->step.retry().micro_batch().halve();
                         if (batches == 3) throw TakenByOthers(Shortage{});
                         return false;
                       }},
                  [] {
                    std::vector<std::string> words = windows_of_four;
                    words.emplace_back("train.micro_batch=auto");
                    return words;
                  }());
  at_work = &disturbed;
  EXPECT_THROW(disturbed.window(0), TakenByOthers);
  EXPECT_EQ(disturbed.step.retry().size(), 8);
  expect_equal(disturbed.window(0), undisturbed.window(0));
}

// What the first three windows say of it.
std::string mistake(const std::string& name) {
  const at::AutoGradMode as_before(true);
  Steps steps({}, {"model.options.mistake=" + name});
  try {
    for (int64_t i = 0; i < 3; ++i) steps.window(i);
    return "no error";
  } catch (const Error& problem) {
    return (problem.exit_code() == Exit::plugin ? "" : "not exit 3: ") + std::string(problem.what());
  }
}

TEST(TrainStep, AStepThatWouldTrainNothingIsAMistakeOfThePlugin) {
  EXPECT_THAT(mistake("detach"), StartsWith("[trial_model] the model's step returns a loss_sum without a graph"));
  EXPECT_THAT(mistake("new_leaf"), StartsWith("[trial_model] the loss depends on none of the model's parameters"));
  EXPECT_THAT(mistake("backward"), StartsWith("[trial_model] the model's step changes the gradient of 'hidden.weight': "
                                              "leave out backward()"));
  EXPECT_THAT(mistake("negative_weight"),
              StartsWith("[trial_model] the model's step breaks the contract: weight is -1.0"));
  EXPECT_THAT(mistake("autograd_off"),
              StartsWith("[trial_model] the model's step breaks the contract: it leaves autograd switched off"));
  EXPECT_THAT(mistake("eval"), HasSubstr("step() leaves the module in eval(): leave both out"));
  EXPECT_THAT(mistake("breaks_backward"),
              StartsWith("[trial_model] backward through the model's step failed: a graph that cannot be walked"));
  EXPECT_THAT(mistake("shapes"), StartsWith("[trial_model] a step with x Float [8, 6, 3], y Float [8, 6], valid Byte "
                                            "[8, 6] failed: "));
}

TEST(TrainStep, ATensorThatShouldBeAParameterIsAMistakeOfThePlugin) {
  EXPECT_THAT(mistake("replace_one"), StartsWith("[trial_model] the loss depends on a tensor of shape [1, 8] that is "
                                                 "no parameter of the model"));
  EXPECT_THAT(mistake("replace_all"), StartsWith("[trial_model] the loss depends on a tensor of shape "));
  EXPECT_THAT(mistake("lazy"), StartsWith("[trial_model] the loss depends on a tensor of shape "));
}

TEST(TrainStep, ATensorThatAStepMakesForItselfIsNoParameter) {
  Steps steps({}, {"model.options.mistake=new_leaf"});
  EXPECT_GT(steps.window(0).weight, 0.0);
}

TEST(TrainStep, AWindowWithoutAGraphMayHoldNothingToLearnFrom) {
  Steps steps({}, {"model.options.mistake=detach"});
  EXPECT_GT(steps.window(0).weight, 0.0);
  EXPECT_GT(steps.window(1).weight, 0.0);
  EXPECT_THROW(steps.window(2), Error);
}

TEST(TrainStep, ALossOfNothingNeedsNoGraph) {
  Steps steps({}, {"model.options.mistake=no_weight"});
  EXPECT_EQ(steps.window(0).weight, 0.0);
}

TEST(TrainStep, NamesParametersThatNoGradientReaches) {
  Steps steps({}, {"model.options.mistake=cut"});
  steps.window(0);
  EXPECT_THAT(steps.step.without_gradient(), ElementsAre("hidden.weight", "hidden.bias"));
  Steps sound({}, {"model.options.freeze_until=9"});
  sound.window(0);
  EXPECT_THAT(sound.step.without_gradient(), IsEmpty()) << "frozen ones are not asked for any";
}

// As torch.optim treats one whose gradient is None: neither decay nor momentum moves it, and there is no memory for it
// before the first.
TEST(TrainStep, WhatAWindowDoesNotReachIsLeftAsItIs) {
  install_tensor_allocator();
  for (const char* optimizer : {"{name=\"adamw\",lr=0.1,weight_decay=0.5}", "{name=\"sgd\",lr=0.1,momentum=0.9}",
                                "{name=\"lamb\",lr=0.1,weight_decay=0.5}"}) {
    Steps steps({}, {"model.options.rare=40", "train.batch_size=6", "train.clip_norm=1",
                     std::string("train.optimizer=") + optimizer});
    at::Tensor rare;
    for (const Parameter& parameter : steps.trial->model->parameters()) {
      if (parameter.name == "rare") rare = *parameter.tensor;
    }
    int left = 0, moved = 0;
    const auto held = [] { return read_ledger().live(Owner::gradients) + read_ledger().live(Owner::optimizer); };
    const int64_t windows = steps.trial->data.windows_per_epoch(), before = held();
    for (int64_t number = 0; number < windows; ++number) {
      const at::Tensor value = rare.detach().clone();
      steps.window(number);
      const bool reached = rare.grad().defined() && rare.grad().count_nonzero().item<int64_t>() > 0;
      if (!reached && moved == 0) {
        EXPECT_FALSE(rare.grad().defined());
        EXPECT_LT(held() - before, static_cast<int64_t>(rare.nbytes()));
      }
      steps.step.apply(0.1, number);
      EXPECT_EQ(at::equal(value, rare), !reached) << optimizer << ", window " << number;
      ++(reached ? moved : left);
    }
    EXPECT_GT(left, 1) << optimizer;
    EXPECT_GT(moved, 1) << optimizer;
  }
}

// What the probe of a plan measures, for each optimizer.
TEST(OptimizerState, IsAsManyTensorsAsTheRuleKeeps) {
  install_tensor_allocator();
  at::Tensor weight = at::zeros({1 << 18});
  std::vector<Parameter> parameters = {{.name = "weight", .group = "", .tensor = &weight}};
  const auto bytes = static_cast<int64_t>(weight.nbytes());
  const auto tensors_of = [&](const OptimizerSection& section) {
    const LedgerReading before = read_ledger();
    Optimizer optimizer(section, 0.0, parameters);
    optimizer.make_state();
    const LedgerReading after = read_ledger();
    EXPECT_LE(after.live(Owner::scratch) - before.live(Owner::scratch), bytes / 4 * 3) << section.name;
    return (after.live(Owner::optimizer) - before.live(Owner::optimizer)) / bytes;
  };
  EXPECT_EQ(tensors_of({.name = "adamw"}), 2);
  EXPECT_EQ(tensors_of({.name = "sgd"}), 0);
  EXPECT_EQ(tensors_of({.name = "sgd", .momentum = 0.9}), 1);
  EXPECT_EQ(tensors_of({.name = "rmsprop"}), 1);
  EXPECT_EQ(tensors_of({.name = "rmsprop", .momentum = 0.9}), 2);
  EXPECT_EQ(tensors_of({.name = "lion"}), 1);
  EXPECT_EQ(tensors_of({.name = "lamb"}), 2);
}

// Of a plan too, whose probe takes its steps here.
TEST(OptimizerState, FrozenParametersHaveNoneAndNoGradient) {
  install_tensor_allocator();
  const auto measured = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"model.options.hidden=4096"};
    words.insert(words.end(), more.begin(), more.end());
    const LedgerReading before = read_ledger();
    Steps steps({}, words);
    const auto tensor_of = [&](const std::string& name) {
      for (const Parameter& parameter : steps.trial->model->parameters()) {
        if (parameter.name == name) return *parameter.tensor;
      }
      return at::Tensor();
    };
    const at::Tensor hidden = tensor_of("hidden.weight").clone(), head = tensor_of("head.weight").clone();
    steps.window(0);
    const LedgerReading after = read_ledger();
    steps.step.apply(0.1, 0);
    EXPECT_EQ(at::equal(hidden, tensor_of("hidden.weight")), !more.empty());
    EXPECT_FALSE(at::equal(head, tensor_of("head.weight")));
    EXPECT_EQ(tensor_of("hidden.weight").grad().defined(), more.empty());
    return std::pair(after.live(Owner::gradients) - before.live(Owner::gradients),
                     after.live(Owner::optimizer) - before.live(Owner::optimizer));
  };
  const auto all = measured({}), frozen = measured({"train.groups=[{match=\"hidden.*\",freeze=true}]"});
  // hidden.weight [4096, 3] and hidden.bias [4096].
  constexpr int64_t bytes = 4096 * 4 * sizeof(float), rounding = 4096;
  EXPECT_NEAR(static_cast<double>(all.first - frozen.first), bytes, rounding);
  EXPECT_NEAR(static_cast<double>(all.second - frozen.second), 2 * bytes, rounding);
}

// A step that has begun cannot be taken back.
TEST(OptimizerState, AStepTakesNoMemoryThatCouldBeRefused) {
  install_tensor_allocator();
  at::Tensor weight = at::ones({1 << 20}).requires_grad_(true);
  weight.mutable_grad() = at::ones({1 << 20});
  std::vector<Parameter> parameters = {{.name = "weight", .group = "", .tensor = &weight}};
  for (const char* name : {"adam", "adamw", "sgd", "rmsprop", "lion", "lamb"}) {
    Optimizer optimizer({.name = name, .weight_decay = 0.1, .momentum = 0.9}, 0.9, parameters);
    optimizer.make_state();
    const EssentialAllocations essential;
    fail_tensor_allocation(0);
    EXPECT_NO_THROW(optimizer.step(0.01, 0)) << name;
    fail_tensor_allocation(-1);
  }
}

// Memory runs out at each allocation of a window in turn.
TEST(TrainStep, WhatRunsOutOfMemoryIsComputedAgainToTheSameBits) {
  install_tensor_allocator();
  const TrainStep::Gradients expected = Steps().window(0);
  int64_t repeated = 0;
  for (int64_t at = 0; at < 200; at += 7) {
    Steps steps;
    fail_tensor_allocation(at);
    expect_equal(steps.window(0), expected);
    fail_tensor_allocation(-1);
    repeated += steps.step.retry().counts().repeated;
    EXPECT_EQ(steps.step.retry().counts().halved, 0);
  }
  EXPECT_GT(repeated, 20);
}

TEST(TrainStep, MicroBatchAndRecomputationTravelInThePosition) {
  const std::vector<std::string> adapts = {"train.micro_batch=auto"};
  Position position;
  Steps saved({}, adapts);
  saved.step.retry().micro_batch().halve();
  saved.step.note_in(position);
  EXPECT_EQ(position.micro_batch, 4);
  EXPECT_FALSE(position.loss_scale) << "of fp32";
  Steps restored({}, adapts);
  restored.step.restore(position);
  EXPECT_EQ(restored.step.retry().size(), 4);
}

}  // namespace
}  // namespace headroom
