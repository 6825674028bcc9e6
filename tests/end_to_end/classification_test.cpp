// Classes from data to report: the examples `classifier` and `toy_classes`. Chance is 1 in 3.
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Classification : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    write_text(folder_ / "classes.toml", R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1
metric = "val/accuracy"
[model]
plugin = "classifier"
[model.options]
classes = 3
label_smoothing = 0.05
[data]
source = "toy_classes"
num_workers = 0
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 800
rarity = 2.0
noise = 1.0
[train]
epochs = 4
batch_size = 30
precision = "fp64"
optimizer = { name = "adamw", lr = 0.01 }
[checkpoint]
every_steps = 25
keep = 10
)");
  }
  Finished classes(std::vector<std::string> words, const std::vector<std::string>& set = {}) const {
    words.insert(words.end(), {"--plugin-dir", HEADROOM_BUILD_DIR "/examples"});
    for (const std::string& one : set) words.insert(words.end(), {"--set", one});
    return headroom(std::move(words));
  }
  json summary_of(const std::vector<std::string>& set = {}, const std::string& out = "runs") {
    const Finished finished = classes({"run", "classes.toml", "--no-plan", "--out", out}, set);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    said_ = finished.err;
    return read_json(run_folder(out) / "summary.json");
  }
  std::string said_;
};

uint64_t sum_of(const json& matrix) {
  uint64_t sum = 0;
  for (const json& row : matrix) {
    for (const json& cell : row) sum += cell.get<uint64_t>();
  }
  return sum;
}

TEST_F(Classification, ModelsLearnAndThePageSaysWhatTheyConfuse) {
  const json summary = summary_of(), val = summary.at("classes").at("val/scores");
  EXPECT_GT(summary.at("metrics").at("val/accuracy").get<double>(), 0.7);
  EXPECT_GT(summary.at("metrics").at("val/macro_f1").get<double>(), 0.6);
  EXPECT_EQ(summary.at("best").at("metric"), "val/accuracy");
  EXPECT_EQ(summary.at("best").at("better"), "higher");
  EXPECT_FALSE(summary.at("metrics").contains("val/mse")) << "labels are no numbers";
  EXPECT_EQ(val.at("names"), json::parse(R"(["circle", "square", "star"])"));
  EXPECT_EQ(sum_of(val.at("matrix")), 200u);
  double right = 0.0;
  for (size_t c = 0; c < 3; ++c) right += val.at("matrix").at(c).at(c).get<double>();
  EXPECT_EQ(summary.at("metrics").at("val/accuracy").get<double>(), right / 200.0);

  const std::string page = read_text(run_folder() / "report.html");
  EXPECT_NE(page.find("Confusion matrix"), std::string::npos);
  EXPECT_NE(page.find(">circle</th>"), std::string::npos);
  const Finished shown = headroom({"runs", "show", run_folder().string()});
  EXPECT_NE(shown.out.find(" taken for '"), std::string::npos) << shown.out;
  const Finished told = headroom({"runs", "show", run_folder().string(), "--json"});
  EXPECT_EQ(json::parse(told.out).at("classes"), summary.at("classes"));
}

// The same checkpoint, judged in other pieces; the same run, trained in other pieces.
TEST_F(Classification, TheMatrixIsTheSameForAnyMicroBatch) {
  const json whole = summary_of({}, "whole"), single = summary_of({"train.micro_batch=1"}, "single");
  for (const char* name : {"val/accuracy", "val/macro_f1", "train/accuracy"})
    EXPECT_EQ(whole.at("metrics").at(name), single.at("metrics").at(name)) << name;
  EXPECT_EQ(whole.at("classes"), single.at("classes"));
  const auto evaluate = [&](const char* micro_batch) {
    const Finished finished = classes({"evaluate", run_folder("whole").string(), "--json", "--checkpoint", "last"},
                                      {std::string("train.micro_batch=") + micro_batch});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return json::parse(finished.out).at("classes");
  };
  EXPECT_EQ(evaluate("1"), evaluate("30"));
  EXPECT_EQ(evaluate("7").at("val/scores"), whole.at("classes").at("val/scores"));
}

// 20 steps an epoch, a checkpoint every 25: the third, of step 50, is in the middle of the third epoch.
TEST_F(Classification, AResumedRunEndsWithTheSameMatrix) {
  const json undisturbed = summary_of({"model.options.class_weights=balanced"});
  EXPECT_NE(said_.find("classes of field 'label' in 600 training samples: 'circle' "), std::string::npos) << said_;
  const std::string metrics = metrics_without_times(run_folder());
  // The newest is what a run goes on from, whatever `last` says.
  const fs::path checkpoints = run_folder() / "checkpoints";
  for (const char* later : {"step-00000060", "step-00000075", "step-00000080", "best", "last"})
    fs::remove_all(checkpoints / later);
  const Finished resumed = classes({"run", "--resume", run_folder().string()});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resumed at step 50"), std::string::npos) << resumed.err;
  EXPECT_EQ(resumed.err.find("training samples: 'circle'"), std::string::npos)
      << "the weights of the classes are in the checkpoint: " << resumed.err;
  const json summary = read_json(run_folder() / "summary.json");
  EXPECT_EQ(summary.at("classes"), undisturbed.at("classes"));
  EXPECT_EQ(summary.at("metrics"), undisturbed.at("metrics"));
  EXPECT_EQ(metrics_without_times(run_folder()), metrics);
}

TEST_F(Classification, ValidateTellsTheBalance) {
  const Finished finished = classes({"validate", "classes.toml", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const json told = json::parse(finished.out).at("classes").at("scores");
  EXPECT_EQ(told.at("field"), "label");
  EXPECT_EQ(told.at("train").at("samples"), 600);
  const auto counts = told.at("train").at("counts").get<std::vector<int>>();
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 600);
  EXPECT_GT(counts[0], counts[1]);
  EXPECT_GT(counts[1], counts[2]);
  const Finished read = classes({"validate", "classes.toml"});
  EXPECT_NE(read.out.find("label, train: circle " + std::to_string(counts[0])), std::string::npos) << read.out;
}

// Of 60 samples the rarer classes have few: with some seed, training gets none of one that validation has.
TEST_F(Classification, ValidateWarnsOfAClassThatIsNeverTrained) {
  bool warned = false;
  for (int seed = 0; seed < 30 && !warned; ++seed) {
    const Finished finished =
        classes({"validate", "classes.toml", "--json"},
                {"data.options.samples=60", "data.options.rarity=12", "data.options.seed=" + std::to_string(seed),
                 "train.batch_size=4", "data.split.train=0.25", "data.split.val=0.75"});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const json told = json::parse(finished.out), balance = told.at("classes").at("scores");
    bool missing = false;
    for (size_t c = 0; c < 3; ++c) {
      missing = missing || (balance.at("train").at("counts").at(c) == 0 && balance.at("val").at("counts").at(c) > 0);
    }
    EXPECT_EQ(told.contains("warnings"), missing) << told.dump(1);
    warned = missing;
  }
  EXPECT_TRUE(warned);
}

TEST_F(Classification, FewerClassesThanTheSourceNamesAreRefused) {
  const Finished finished = classes({"validate", "classes.toml"}, {"model.options.classes=2"});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_NE(finished.err.find("names 3 classes of the field 'label', the model has 2"), std::string::npos)
      << finished.err;
}

}  // namespace
}  // namespace headroom
