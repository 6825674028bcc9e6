#include "train/state.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include "retry_of.hpp"
#include "train/differences.hpp"
#include "train/evaluate.hpp"
#include "train/window.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// A run in small: what TrainingLoop keeps between two windows.
struct Trial {
  explicit Trial(const std::vector<std::string>& words = {"train.ema.decay=0.9", "data.options.samples=80"})
      : trial(words),
        normalizer(Normalizer::measure(*trial->data.source, trial->data.splits.train, "sampled", 32)),
        loader(trial->data.source, trial->data.splits.train, normalizer, trial->loader_options(true)),
        retry(retry_of(trial->micro_batch())),
        window(*trial->model, trial->device, trial->dtype, retry, trial->output_metrics()),
        optimizer(trial->data.experiment.train.optimizer, trial->data.experiment.train.ema_decay,
                  trial->model->parameters(), trial->data.optimizer.get()),
        sums(trial->model->metrics().size(), trial->device, trial->output_metrics()),
        interval(trial->model->metrics().size(), trial->device) {}

  void train(int64_t steps) {
    loader.seek(static_cast<uint64_t>(position.epoch), position.samples, /*continuous=*/true);
    for (int64_t i = 0; i < steps; ++i) {
      window.begin();
      ASSERT_TRUE(window.add(*loader.next(), position.step, /*want_outputs=*/true));
      window.divide();
      optimizer.step(0.01, position.step++);
      sums.add(window.sums());
      interval.add(window.sums());
      position.samples += 8;
    }
  }
  RunState state() { return {*trial, optimizer, sums, interval, position, normalizer}; }

  TrialSetup trial;
  Normalizer normalizer;
  Loader loader;
  Retry retry;
  Window window;
  Optimizer optimizer;
  StepSums sums, interval;
  Position position;
};

std::vector<NamedTensor> everything(Trial& run) {
  std::vector<NamedTensor> all = run.optimizer.state();
  for (const Parameter& parameter : run.trial->model->parameters()) all.push_back({parameter.name, *parameter.tensor});
  all.push_back({"sums", run.sums.tensor()});
  all.push_back({"interval", run.interval.tensor()});
  for (const auto& [name, tensor] : run.sums.outputs().state()) all.push_back({"outputs/" + name, tensor});
  return all;
}

void expect_bit_equal(Trial& a, Trial& b) {
  EXPECT_EQ(a.sums.outputs().state().size(), 1u);
  const auto left = everything(a), right = everything(b);
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(left[i].tensor.equal(right[i].tensor)) << left[i].name;
}

TEST(State, GoesOnBitEqualAfterSaveAndRestore) {
  Trial undisturbed;
  undisturbed.train(3);
  Checkpoints checkpoints(undisturbed.trial.folder() / "checkpoints");
  undisturbed.position.has_best = true;
  undisturbed.position.best = 0.1;  // not exact in binary
  undisturbed.position.improved_to = 0.3;
  undisturbed.position.skipped_windows = 4;
  undisturbed.position.measured = {{{"val/r2", 0.2}}, {{"val/r2", {0.1, nullptr}}}};
  torch::randn({7});
  const auto folder = save_state(checkpoints, undisturbed.state(), {{"metrics.csv", 17}}, true);
  const at::Tensor drawn = torch::randn({5});
  undisturbed.train(3);

  Trial resumed;
  const LoadedCheckpoint checkpoint = load_checkpoint(folder);
  const auto logs = restore_state(checkpoint, resumed.state());
  EXPECT_EQ(logs, (nlohmann::json{{"metrics.csv", 17}}));
  const Differences differences = differences_from(checkpoint, *resumed.trial);
  EXPECT_THAT(differences.mathematics, IsEmpty());
  EXPECT_THAT(differences.length, IsEmpty());
  EXPECT_THAT(differences.rounding, IsEmpty());
  EXPECT_EQ(resumed.position.step, 3);
  EXPECT_EQ(resumed.position.samples, 24u);
  EXPECT_EQ(resumed.position.best, 0.1);
  EXPECT_EQ(resumed.position.improved_to, 0.3);
  EXPECT_EQ(resumed.position.skipped_windows, 4);
  EXPECT_EQ(resumed.position.measured.values, undisturbed.position.measured.values);
  EXPECT_EQ(resumed.position.measured.channels, undisturbed.position.measured.channels);
  EXPECT_TRUE(torch::randn({5}).equal(drawn));  // LibTorch's generator goes on where it was
  resumed.train(3);
  expect_bit_equal(undisturbed, resumed);
}

TEST(State, OfEveryOtherOptimizerToo) {
  for (const std::string optimizer : {"{name=\"sgd\",lr=0.1,momentum=0.9,nesterov=true}",
                                      "{name=\"rmsprop\",momentum=0.9}", "{name=\"lion\"}", "{name=\"lamb\"}"}) {
    const std::vector<std::string> words = {"train.optimizer=" + optimizer, "train.precision=fp64"};
    Trial undisturbed(words);
    undisturbed.train(2);
    Checkpoints checkpoints(undisturbed.trial.folder() / "checkpoints");
    const auto folder = save_state(checkpoints, undisturbed.state(), {}, false);
    undisturbed.train(2);
    Trial resumed(words);
    restore_state(load_checkpoint(folder), resumed.state());
    resumed.train(2);
    expect_bit_equal(undisturbed, resumed);
  }
}

TEST(State, OfParameterGroupsToo) {
  const std::vector<std::string> words = {
      "train.groups=[{match=\"hidden.*\",freeze=true},{match=\"head.bias\",lr_scale=0.5}]", "train.ema.decay=0.9"};
  Trial undisturbed(words);
  undisturbed.train(2);
  for (const NamedTensor& named : undisturbed.optimizer.state())
    EXPECT_EQ(named.name.find("hidden"), std::string::npos) << named.name;
  Checkpoints checkpoints(undisturbed.trial.folder() / "checkpoints");
  const auto folder = save_state(checkpoints, undisturbed.state(), {}, false);
  undisturbed.train(2);
  Trial resumed(words);
  restore_state(load_checkpoint(folder), resumed.state());
  EXPECT_THAT(differences_from(load_checkpoint(folder), *resumed.trial).mathematics, IsEmpty());
  resumed.train(2);
  expect_bit_equal(undisturbed, resumed);
  TrialSetup other({"train.ema.decay=0.9"});
  EXPECT_THAT(differences_from(load_checkpoint(folder), *other).mathematics,
              ElementsAre(AllOf(StartsWith("train.groups was [{\"freeze\":true"), EndsWith(", is not set"))));
}

TEST(State, CarriesWhatThePluginKeepsBesideItsTensors) {
  const std::vector<std::string> words = {"model.options.remember=true"};
  Trial undisturbed(words);
  undisturbed.train(3);
  Checkpoints checkpoints(undisturbed.trial.folder() / "checkpoints");
  const auto folder = save_state(checkpoints, undisturbed.state(), {}, false);
  EXPECT_EQ(undisturbed.trial->model->save_state(), "3");
  undisturbed.train(2);
  Trial resumed(words);
  restore_state(load_checkpoint(folder), resumed.state());
  EXPECT_EQ(resumed.trial->model->save_state(), "3");
  resumed.train(2);
  expect_bit_equal(undisturbed, resumed);
}

TEST(State, HoldsWhatAnOptimizerPluginKeepsAndSaysWhatItWas) {
  const std::vector<std::string> words = {"data.options.samples=80", "train.optimizer.name=faulty_optimizer",
                                          "train.optimizer_options.at=3"};
  Trial undisturbed(words);
  undisturbed.train(3);
  Checkpoints checkpoints(undisturbed.trial.folder() / "checkpoints");
  const auto folder = save_state(checkpoints, undisturbed.state(), {}, false);
  undisturbed.train(2);
  Trial resumed(words);
  const LoadedCheckpoint checkpoint = load_checkpoint(folder);
  EXPECT_NE(checkpoint.state.find("optimizer/sum/hidden.weight"), nullptr);
  restore_state(checkpoint, resumed.state());
  resumed.train(2);
  expect_bit_equal(undisturbed, resumed);

  const auto differences = [&](std::vector<std::string> now) {
    now.emplace_back("data.options.samples=80");
    TrialSetup other(now);
    return differences_from(checkpoint, *other).mathematics;
  };
  EXPECT_THAT(differences({"train.optimizer.name=faulty_optimizer", "train.optimizer_options.at=4"}),
              ElementsAre("train.optimizer_options.at was 3, is 4"));
  EXPECT_THAT(differences({"train.optimizer.name=sgd"}),
              UnorderedElementsAre("train.optimizer.name was \"faulty_optimizer\", is \"sgd\"",
                                   "train.optimizer_options.at was 3, is not set",
                                   "train.optimizer_options.fault was \"none\", is not set"));
  EXPECT_TRUE(surroundings(*resumed.trial).at("plugins").contains("faulty_optimizer"));
}

TEST(State, NamesWhatDiffersByKey) {
  Trial run;
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  LoadedCheckpoint checkpoint = load_checkpoint(save_state(checkpoints, run.state(), {}, false));
  const std::vector<std::string> words = {"train.ema.decay=0.9", "data.options.samples=80"};
  const auto now = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    TrialSetup other(more);
    return differences_from(checkpoint, *other);
  };
  EXPECT_THAT(now({"train.micro_batch=2"}).rounding, ElementsAre("micro_batch was \"auto\", is 2"));
  EXPECT_THAT(now({"train.micro_batch=2"}).mathematics, IsEmpty());
  EXPECT_THAT(now({"train.epochs=7", "train.early_stop.patience=2"}).mathematics, IsEmpty());
  EXPECT_THAT(now({"train.epochs=7"}).length, ElementsAre(testing::EndsWith(", is 7")));
  const Differences found = now({"train.optimizer.lr=0.5", "experiment.seed=99", "model.options.dropout=0.25",
                                 "train.clip_norm=0.5", "train.drop_last=true"});
  EXPECT_THAT(found.rounding, IsEmpty());
  EXPECT_THAT(found.mathematics,
              UnorderedElementsAre(AllOf(StartsWith("train.optimizer.lr was 0.0"), EndsWith(", is 0.5")),
                                   AllOf(StartsWith("experiment.seed was "), EndsWith(", is 99")),
                                   AllOf(StartsWith("model.options.dropout was 0.0"), EndsWith(", is 0.25")),
                                   AllOf(StartsWith("train.clip_norm was "), EndsWith(", is 0.5")),
                                   AllOf(StartsWith("train.drop_last was 0, is 1"))));
  EXPECT_THAT(now({"train.clip_value=0.5"}).mathematics, ElementsAre("train.clip_value was not set, is 0.5"));
  EXPECT_THAT(now({"data.options.samples=90"}).mathematics, ElementsAre("data.options.samples was 80, is 90"));
  EXPECT_EQ(sentence_of([&] {
              require_same_mathematics(now({"train.optimizer.lr=0.5"}), "RUN");
            }).find("[resume] RUN was trained with other settings: train.optimizer.lr was "),
            0u);
}

// Evaluations decide the rate of the plateau schedule, and with it the weights.
TEST(State, WhatAPlateauIsJudgedByIsItsMathematics) {
  const std::string plateau = "train.schedule.name=plateau", samples = "data.options.samples=80";
  Trial run({plateau, samples}), constant({samples});
  const auto differences = [&](Trial& of, std::vector<std::string> words) {
    Checkpoints checkpoints(of.trial.folder() / "checkpoints");
    const LoadedCheckpoint checkpoint = load_checkpoint(save_state(checkpoints, of.state(), {}, false));
    words.push_back(samples);
    TrialSetup other(words);
    return differences_from(checkpoint, *other).mathematics;
  };
  EXPECT_THAT(differences(run, {plateau}), IsEmpty());
  EXPECT_THAT(differences(run, {plateau, "experiment.metric=val/mae"}),
              ElementsAre(StartsWith("what the plateau schedule judges by")));
  EXPECT_THAT(differences(run, {plateau, "eval.every_epochs=2"}),
              ElementsAre(StartsWith("what the plateau schedule judges by")));
  EXPECT_THAT(differences(constant, {"experiment.metric=val/mae"}), IsEmpty());
}

TEST(State, OtherPiecesAreOtherDrawsOfASequentialGenerator) {
  const std::vector<std::string> words = {"model.plugin=trial_generator_model", "model.options.randomness=sequential",
                                          "data.options.samples=80"};
  Trial run(words);
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  const LoadedCheckpoint checkpoint = load_checkpoint(save_state(checkpoints, run.state(), {}, false));
  std::vector<std::string> in_pieces = words;
  in_pieces.emplace_back("train.micro_batch=2");
  TrialSetup other(in_pieces);
  EXPECT_THAT(differences_from(checkpoint, *other).mathematics, ElementsAre("micro_batch was 8, is 2"));
}

TEST(State, AnEvaluationThatIsStoppedLeavesNothingBehind) {
  Trial run({"model.plugin=trial_generator_model", "model.options.randomness=sequential", "model.options.dropout=0.2",
             "model.options.remember=true", "model.options.evaluation_leaves_traces=true", "data.options.samples=80"});
  run.train(2);
  Loader loader(run.trial->data.source, run.trial->data.splits.val, run.normalizer, run.trial->loader_options(false));
  const std::string remembered = run.trial->model->save_state();
  const at::Tensor generator = at::detail::getDefaultCPUGenerator().get_state();
  const auto left_behind = [&](int64_t batches) {
    const bool whole =
        evaluate(*run.trial, loader, 2, run.retry, [&](int64_t done) { return done > batches; }).has_value();
    const bool same = run.trial->model->save_state() == remembered &&
                      at::detail::getDefaultCPUGenerator().get_state().equal(generator);
    return std::string(whole ? "ended, " : "stopped, ") + (same ? "nothing" : "something");
  };
  EXPECT_EQ(left_behind(1), "stopped, nothing");
  EXPECT_EQ(left_behind(1000), "ended, something");
}

TEST(State, AnOlderCheckpointTellsByItsIdentity) {
  Trial run;
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  LoadedCheckpoint checkpoint = load_checkpoint(save_state(checkpoints, run.state(), {}, false));
  checkpoint.json.at("surroundings").erase("mathematics");
  EXPECT_THAT(differences_from(checkpoint, *run.trial).mathematics, IsEmpty());
  TrialSetup other({"train.ema.decay=0.9", "data.options.samples=80", "train.optimizer.lr=0.5"});
  EXPECT_THAT(differences_from(checkpoint, *other).mathematics, ElementsAre(StartsWith("identity was ")));
}

TEST(State, TheAverageIsWhatEvaluationLoads) {
  Trial run;
  run.train(4);
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  const LoadedCheckpoint checkpoint = load_checkpoint(save_state(checkpoints, run.state(), {}, false));
  TrialSetup live({"data.options.samples=80"}), averaged({"data.options.samples=80"});
  restore_model(checkpoint, *live->model, false);
  restore_model(checkpoint, *averaged->model, true);
  EXPECT_TRUE(live->model->parameters().front().tensor->equal(*run.trial->model->parameters().front().tensor));
  EXPECT_FALSE(averaged->model->parameters().front().tensor->equal(*run.trial->model->parameters().front().tensor));
  const Optimizer::Averaged lent(run.optimizer);
  EXPECT_TRUE(averaged->model->parameters().front().tensor->equal(*run.trial->model->parameters().front().tensor));
}

TEST(State, ACheckpointOfAnotherModelIsRefused) {
  Trial run;
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  const auto folder = save_state(checkpoints, run.state(), {}, false);
  Trial wider({"model.options.hidden=9"});
  EXPECT_EQ(sentence_of([&] { restore_state(load_checkpoint(folder), wider.state()); }),
            "[checkpoint] " + (folder / "model.safetensors").string() +
                ": 'hidden.weight' has shape [8, 3], the model needs [9, 3]: use the checkpoint with the experiment "
                "that wrote it");
}

TEST(State, ACheckpointOfAnotherOptimizerIsRefused) {
  Trial run({"train.optimizer.name=sgd"});
  run.optimizer.make_state();
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  const auto folder = save_state(checkpoints, run.state(), {}, false);
  Trial adam({"train.optimizer.name=adam"});
  EXPECT_EQ(sentence_of([&] { restore_state(load_checkpoint(folder), adam.state()); }),
            "[checkpoint] " + (folder / "state.safetensors").string() +
                ": 'exp_avg/hidden.weight' is missing, which the optimizer goes on with: resume it with the optimizer, "
                "train.ema and train.groups that it was trained with, or begin a new run from its weights (init.from)");
}

TEST(State, WhatWasFrozenHasNoStateToGoOnWith) {
  Trial run({"train.groups=[{match=\"hidden.*\",freeze=true}]"});
  Checkpoints checkpoints(run.trial.folder() / "checkpoints");
  const auto folder = save_state(checkpoints, run.state(), {}, false);
  Trial thawed({"data.options.samples=80"});
  EXPECT_THAT(sentence_of([&] { restore_state(load_checkpoint(folder), thawed.state()); }),
              EndsWith("or begin a new run from its weights (init.from)"));
}

}  // namespace
}  // namespace headroom
