// The commands beside `run`, as words in and text out.
#include <elf.h>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

#include "../runner/shell.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Commands : public TrialRun {
 protected:
  Finished with_plugins(std::vector<std::string> words) const {
    words.insert(words.end(), {"--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    return headroom(std::move(words));
  }
  Finished with_set(std::vector<std::string> words, const std::vector<std::string>& set) const {
    for (const std::string& word : set) words.insert(words.end(), {"--set", word});
    return with_plugins(std::move(words));
  }
};

TEST_F(Commands, HelpAndVersionNeedNothing) {
  const Finished help = headroom({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* verb : {"run", "plan", "profile", "validate", "evaluate", "predict", "export", "plugins", "data",
                           "limits", "schema", "parity"})
    EXPECT_NE(help.out.find(verb), std::string::npos) << verb;
  EXPECT_EQ(headroom({"--version"}).exit_code, 0);
  for (const char* verb :
       {"run", "plan", "profile", "validate", "evaluate", "predict", "export", "limits", "schema", "parity"}) {
    const Finished one = headroom({verb, "--help"});
    EXPECT_EQ(one.exit_code, 0) << verb;
    EXPECT_NE(one.out.find("Example: headroom "), std::string::npos) << verb << ": " << one.out;
  }
}

TEST_F(Commands, ValidateSaysWhatItFound) {
  const Finished plain = with_plugins({"validate", "trial.toml"});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_NE(plain.out.find("trial.toml: valid"), std::string::npos);
  EXPECT_NE(plain.out.find("x float32 [6,3] V, y float32 [6] m, valid uint8 [6]\n"), std::string::npos) << plain.out;
  EXPECT_NE(plain.out.find("120 train, 40 val, 0 test\n"), std::string::npos) << plain.out;
  const Finished json = with_plugins({"validate", "trial.toml", "--json"});
  const auto found = nlohmann::json::parse(json.out);
  EXPECT_EQ(found.at("valid"), true);
  EXPECT_EQ(found.at("parameters"), 8 * 3 + 8 + 8 + 1);
  EXPECT_EQ(found.at("samples"), (nlohmann::json{{"train", 120}, {"val", 40}, {"test", 0}}));
  EXPECT_EQ(found.at("fields").size(), 3u);
  EXPECT_EQ(found.at("fields").at(2).at("dtype"), "uint8");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Commands, ValidateFindsWhatIsBroken) {
  struct Broken {
    std::string set;
    int exit_code;
    std::string sentence;
  };
  for (const auto& [set, exit_code, sentence] :
       std::vector<Broken>{{"train.batch_sise=4", 2, "did you mean train.batch_size"},
                           {"train.batch_size=0", 2, "train.batch_size"},
                           {"model.options.hiden=4", 2, "hidden"},
                           {"model.options.dropout=1.5", 2, "dropout"},
                           {"model.options.randomness=other", 2, "keyed"},
                           {"data.options.samples=many", 2, "samples"},
                           {"model.plugin=nonsense", 3, "nonsense"},
                           {"model.plugin=trial_source", 2, "model.plugin"},
                           {"data.source=trial_model", 2, "data.source"},
                           {"data.options.path=nowhere", 4, "nowhere/seed.txt"},
                           {"experiment.metric=val/nonsense", 2, "experiment.metric"},
                           {"experiment.metric=test/loss", 2, "experiment.metric"},
                           {"train.precision=fp8", 2, "bf16"},
                           {"sweep={\"train.batch_size\"=[4,0]}", 2, "sweep.\"train.batch_size\"[1]"},
                           {"sweep={\"model.options.hidden\"=[4,0]}", 2, "sweep.\"model.options.hidden\"[1]"},
                           {"data.split={train=0.5,val=0.2,test=0.2}", 2, "data.split"}}) {
    const Finished finished = with_plugins({"validate", "trial.toml", "--set", set});
    EXPECT_EQ(finished.exit_code, exit_code) << set << "\n" << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << set << "\n" << finished.err;
    EXPECT_EQ(finished.out, "") << set;
  }
}

TEST_F(Commands, PluginsListShowAndCheck) {
  const Finished list = with_plugins({"plugins", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  for (const char* name : {"tds_lstm", "emg_hdf5", "trial_model", "trial_source"})
    EXPECT_NE(list.out.find(name), std::string::npos) << name;
  const auto json = nlohmann::json::parse(with_plugins({"plugins", "list", "--json"}).out);
  EXPECT_TRUE(json.is_array());

  const Finished show = with_plugins({"plugins", "show", "trial_model"});
  EXPECT_EQ(show.exit_code, 0) << show.err;
  for (const char* text : {"dropout", "[0 .. 1]", "keyed | sequential", "width"})
    EXPECT_NE(show.out.find(text), std::string::npos) << text << "\n" << show.out;
  EXPECT_EQ(nlohmann::json::parse(with_plugins({"plugins", "show", "trial_source", "--json"}).out).at("id"),
            "trial_source");
  EXPECT_EQ(with_plugins({"plugins", "show", "nonsense"}).exit_code, 3);

  for (const char* name : {"trial_model", "trial_source"}) {
    const Finished check = with_plugins({"plugins", "check", name});
    EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
    EXPECT_NE(check.out.find("ok"), std::string::npos);
  }
  write_text(folder_ / "broken.so", "not a library");
  EXPECT_EQ(headroom({"plugins", "check", (folder_ / "broken.so").string()}).exit_code, 3);
}

// The lines of `plugins check` that do not begin with "ok".
std::string complaints(const Finished& check) {
  std::string found;
  std::istringstream lines(check.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("ok")) found += line + '\n';
  }
  return found;
}

using Mistakes = std::vector<std::pair<std::vector<std::string>, std::string>>;

// Of trial_model, as settings, and what is said to them: on the data of an experiment and on what is made up.
Mistakes mistakes_told_either_way() {
  const std::string whole = "FAIL  model: whole or in pieces, the gradient is the same: [trial_model] ";
  const std::string stepped = "FAIL  model: a step gives loss, weight, outputs and metrics: [trial_model] ";
  const std::string reaches = "FAIL  model: a gradient reaches every parameter: [trial_model] ";
  return {
      {{"model.options.loss=mean"}, whole},
      {{"model.options.remember=true"}, whole},
      {{"model.options.randomness=sequential", "model.options.dropout=0.2"},
       "FAIL  model: it draws from sample keys alone, or says so: [trial_model] a step draws from LibTorch's"},
      {{"model.options.evaluation_leaves_traces=true"},
       "FAIL  model: evaluation draws nothing and leaves nothing behind: [trial_model] evaluation changes a buffer"},
      {{"model.options.mistake=detach"}, reaches + "the model's step returns a loss_sum without a"},
      {{"model.options.mistake=new_leaf"}, reaches + "the loss depends on none of the model's"},
      {{"model.options.mistake=clock"},
       "FAIL  model: one seed gives the same first weights: [trial_model] two models of one seed begin with "
       "different values of 'head.bias'"},
      {{"model.options.mistake=lazy"}, stepped + "the loss depends on a tensor of"},
      {{"model.options.mistake=backward"}, stepped}};
}

template <class Check>
void expect_told(const Mistakes& mistakes, Check check) {
  for (const auto& [set, sentence] : mistakes) {
    const Finished found = check(set);
    EXPECT_EQ(found.exit_code, 3) << sentence;
    EXPECT_NE(complaints(found).find(sentence), std::string::npos) << found.out << found.err;
  }
}

TEST_F(Commands, PluginsCheckStepsTheModelOfAnExperiment) {
  const auto check = [&](const std::vector<std::string>& set) {
    return with_set(
        {"plugins", "check", "trial_model", "--with", "trial.toml", "--set", "model.options.remember=false"}, set);
  };
  const Finished sound = check({"model.options.dropout=0.2"});
  EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.err;
  EXPECT_EQ(complaints(sound).find("model: "), std::string::npos) << sound.out;
  EXPECT_NE(sound.out.find("ok    model: whole or in pieces, the gradient is the same\n"), std::string::npos)
      << sound.out;
  EXPECT_NE(sound.out.find("ok    datasource: fills its slots and nothing beside them\n"), std::string::npos)
      << sound.out;
  const Finished doubtful = check({"model.options.mistake=cut"});
  EXPECT_EQ(doubtful.exit_code, 0) << doubtful.out;
  EXPECT_NE(complaints(doubtful).find("the loss does not depend on hidden.weight and 1 more"), std::string::npos)
      << doubtful.out;
  Mistakes mistakes = mistakes_told_either_way();
  mistakes.push_back({{"data.options.forgets=true"},
                      "FAIL  datasource: fills its slots and nothing beside them: [plugin] field 'y' of sample "});
  expect_told(mistakes, check);
}

TEST_F(Commands, PluginsCheckStepsAModelWithoutAnExperiment) {
  const auto check = [&](const std::string& plugin, const std::vector<std::string>& set) {
    return with_set({"plugins", "check", plugin}, set);
  };
  const std::string whole = "model: whole or in pieces, the gradient is the same";
  const Finished sound = check("trial_model", {"model.options.dropout=0.2"});
  EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.err;
  EXPECT_EQ(complaints(sound).find("model: "), std::string::npos) << sound.out;
  EXPECT_NE(sound.out.find("ok    " + whole + "\n"), std::string::npos) << sound.out;
  const Finished shipped = check("tds_lstm", {});
  EXPECT_EQ(shipped.exit_code, 0) << shipped.out << shipped.err;
  EXPECT_NE(shipped.out.find("ok    " + whole + "\n"), std::string::npos) << shipped.out;

  const auto on_made_up = [&](const std::vector<std::string>& set) { return check("trial_model", set); };
  const std::string stepped = "FAIL  model: a step gives loss, weight, outputs and metrics: [trial_model] ";
  const Mistakes mistakes = {
      {{"model.options.mistake=not_a_number"},
       "FAIL  model: a gradient reaches every parameter: [trial_model] the loss of these samples is NaN, which is"},
      {{"model.options.mistake=no_rows"},
       "FAIL  model: predictions have the shapes of their targets: [trial_model] the output 'prediction' has shape"},
      {{"model.options.mistake=needs_two"}, "FAIL  " + whole + ": [trial_model] a sample alone cannot be stepped: "},
      {{"model.options.mistake=couple"},
       "FAIL  model: evaluated alone or among others, a sample is the same: [trial_model] 'prediction' of a sample"},
      {{"model.options.mistake=no_weight"},
       "FAIL  model: a gradient reaches every parameter: [trial_model] loss_sum is "},
      {{"model.options.mistake=mean_metric"},
       "FAIL  model: evaluated whole or in pieces, loss and metrics are the same: [trial_model] 'mae' of the samples"},
      {{"model.options.mistake=keep"}, "FAIL  model: a step gives back what it took: [trial_model] each step keeps "},
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed for a while
      {{"model.options.mistake=keep_memory"},
       "FAIL  model: a step gives back what it took: [trial_model] each step keeps 1"},
#endif
      {{"model.options.mistake=shapes"}, stepped},
      {{"model.options.mistake=negative_weight"}, stepped + "the model's step breaks the contract: weight is -1"}};
  expect_told(mistakes, on_made_up);
  expect_told(mistakes_told_either_way(), on_made_up);
  const std::vector<std::string> averaged = {"model.options.loss=mean"};
  EXPECT_EQ(on_made_up(averaged).out, on_made_up(averaged).out);
}

TEST_F(Commands, PluginsCheckPredictsFromInputsAlone) {
  const auto check = [&](const std::string& mistake) {
    return with_plugins({"plugins", "check", "predicting_model", "--set", "model.options.mistake=" + mistake});
  };
  const Finished sound = check("none");
  EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.err;
  EXPECT_NE(sound.out.find("ok    model: predicts from inputs alone\n"), std::string::npos) << sound.out;
  for (const auto& [mistake, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"needs_target", "predict() fails without the field 'y'"},
           {"couples", "'prediction' of a sample differs by "},
           {"few_channels", "its prediction has 1 channels, the field 'y' has 2"}}) {
    const Finished found = check(mistake);
    EXPECT_EQ(found.exit_code, 3) << mistake;
    EXPECT_NE(complaints(found).find("FAIL  model: predicts from inputs alone: [predicting_model] " + sentence),
              std::string::npos)
        << found.out << found.err;
  }
}

TEST_F(Commands, PluginsCheckSaysWhyAModelIsNotStepped) {
  const std::string line = "skip  model: a step gives loss, weight, outputs and metrics: not stepped: ";
  const Finished refusal =
      with_plugins({"plugins", "check", "trial_model", "--set", "model.options.mistake=refuse_fields"});
  EXPECT_EQ(refusal.exit_code, 0) << refusal.out << refusal.err;
  EXPECT_NE(refusal.out.find(line + "[trial_model] the field 'x' must have 5 channels; give --with EXPERIMENT\n"),
            std::string::npos)
      << refusal.out;
  EXPECT_EQ(refusal.out.find("model: a gradient reaches"), std::string::npos) << refusal.out;
  const Finished silent = with_plugins({"plugins", "check", "hungry_model"});
  EXPECT_EQ(silent.exit_code, 0) << silent.out << silent.err;
  EXPECT_NE(silent.out.find(line + "it does not say by inputs() which fields it takes; give --with EXPERIMENT\n"),
            std::string::npos)
      << silent.out;

  for (const auto& [plugin, set, sentence] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"trial_model", "train.batch_size=2",
            "--set train.batch_size: without an experiment there are the keys of model.options only"},
           {"trial_model", "model.plugin=trial_model",
            "--set model.plugin: without an experiment there are the keys of model.options only"},
           {"trial_model", "model=3", "--set model: without an experiment there are the keys of model.options only"},
           {"trial_model", "model.options=3",
            "--set model.options: without an experiment there are the keys of model.options only"},
           {"trial_model", "model.options.dropuot=0.1", "dropout"},
           {"trial_source", "model.options.dropout=0.1", "is not a model"}}) {
    const Finished refused = with_plugins({"plugins", "check", plugin, "--set", set});
    EXPECT_EQ(refused.exit_code, 2) << set;
    EXPECT_NE(refused.err.find(sentence), std::string::npos) << set << "\n" << refused.err;
  }
}

TEST_F(Commands, SchemaIsJsonThatKnowsThePlugins) {
  const Finished schema = with_plugins({"schema"});
  EXPECT_EQ(schema.exit_code, 0) << schema.err;
  const auto json = nlohmann::json::parse(schema.out);
  EXPECT_TRUE(json.contains("$schema"));
  EXPECT_NE(schema.out.find("gradient_accumulation_steps"), std::string::npos);
  EXPECT_NE(schema.out.find("freeze_until"), std::string::npos) << "options of trial_model";
}

TEST_F(Commands, SynthWritesOnceAndNeverTouchesWhatIsThere) {
  const std::vector<std::string> words = {
      "data", "synth", "trial.toml", "--set", "data.options.path=made", "--set", "data.synth={seed=7}"};
  const Finished made = with_plugins(words);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("wrote "), std::string::npos);
  EXPECT_EQ(read_text(folder_ / "made/seed.txt"), "7\n");

  write_text(folder_ / "made/seed.txt", "8\n");
  const Finished again = with_plugins(words);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("is there already: left as it is"), std::string::npos) << again.out;
  EXPECT_EQ(read_text(folder_ / "made/seed.txt"), "8\n");

  EXPECT_EQ(with_plugins(
                {"data", "synth", "trial.toml", "--set", "data.options.path=slashed/", "--set", "data.synth={seed=7}"})
                .exit_code,
            0);
  EXPECT_EQ(read_text(folder_ / "slashed/seed.txt"), "7\n");

  const Finished without = with_plugins({"data", "synth", "trial.toml"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("has no [data.synth] table"), std::string::npos) << without.err;
}

TEST_F(Commands, SynthLeavesWhatAnotherProcessHasWrittenMeanwhile) {
  // Reading `like` waits for the FIFO's writer, so the plugin is still at work when the other data comes.
  const fs::path fifo = folder_ / "like";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Program program({"data", "synth", "trial.toml", "--set", "data.options.path=made", "--set",
                   "data.synth={like=\"" + fifo.string() + "\"}", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR},
                  here());
  int writer = -1;
  ASSERT_TRUE(eventually([&] {
    writer = open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return writer >= 0 || program.ended();
  }));
  if (writer >= 0) {
    fs::create_directory(folder_ / "made");
    write_text(folder_ / "made/seed.txt", "8\n");
    EXPECT_EQ(write(writer, "7\n", 2), 2);
    close(writer);
  }
  const Finished finished = program.wait();
  EXPECT_GE(writer, 0) << finished.err;
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("is there already: left as it is"), std::string::npos) << finished.out;
  EXPECT_EQ(read_text(folder_ / "made/seed.txt"), "8\n");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().filename().string().find(".partial-"), std::string::npos) << entry.path();
}

TEST_F(Commands, RunMakesMissingDataAndSaysSo) {
  const std::vector<std::string> set = {"data.options.path=made", "data.synth={seed=7}", "train.epochs=1"};
  const Finished first = run(set, "first");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("wrote synthetic data to " + (folder_ / "made").string()), std::string::npos) << first.err;
  const Finished second = run(set, "second");
  EXPECT_EQ(second.err.find("wrote synthetic data"), std::string::npos);
  EXPECT_TRUE(read_text(run_folder("first") / "checkpoints/last/model.safetensors") ==
              read_text(run_folder("second") / "checkpoints/last/model.safetensors"));

  EXPECT_EQ(with_plugins({"validate", "trial.toml", "--set", "data.options.path=later", "--set", "data.synth={seed=7}"})
                .exit_code,
            0);
  EXPECT_FALSE(fs::exists(folder_ / "later"));
  EXPECT_EQ(with_plugins({"validate", "trial.toml", "--set", "data.options.path=later", "--set", "data.synth={sead=7}"})
                .exit_code,
            2);
}

// The front starts in milliseconds because it holds no LibTorch.
TEST_F(Commands, TheFrontIsSmall) {
  headroom({"plugins", "list"});  // the trainer describes LibTorch plugins once; the answers are kept
  const Finished list = headroom({"plugins", "list"});
  EXPECT_EQ(list.exit_code, 0);
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(list.peak_resident_bytes, 30 << 20);
#endif
}

TEST_F(Commands, TheFrontNeedsNoLibTorch) {
  const std::string needed = shell(std::string("ldd ") + HEADROOM_BUILD_DIR + "/bin/headroom").out;
  EXPECT_NE(needed.find("libc.so"), std::string::npos);
  for (const char* library : {"libtorch", "libc10", "libgomp", "mkl"})
    EXPECT_EQ(needed.find(library), std::string::npos) << needed;
  EXPECT_NE(shell(std::string("ldd ") + HEADROOM_BUILD_DIR + "/libexec/headroom-train").out.find("libtorch_cpu"),
            std::string::npos);
}

}  // namespace
}  // namespace headroom
