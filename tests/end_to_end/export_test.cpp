// `headroom export`: what a run leaves for other programs.
#include <cstdlib>

#include "../runner/record/tensor_values.hpp"
#include "small_policy.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Export : public TrialRun {
 protected:
  Finished exported(std::vector<std::string> more, const std::vector<std::string>& environment = {}) const {
    more.insert(more.begin(), {"export", run_folder().string()});
    more.insert(more.end(), {"--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    return headroom_program(std::move(more), here(environment));
  }
  // A model that predicts, from data of which every third sample is damaged.
  void train_predicting() const {
    write_text(folder_ / "here.toml", R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1
[model]
plugin = "predicting_model"
[data]
source = "trial_source"
num_workers = 0
normalize = "off"
on_bad_sample = "skip"
split = { train = 0.5, val = 0.5, test = 0.0 }
[data.options]
samples = 32
broken_at = [0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30]
[train]
epochs = 1
batch_size = 4
)");
    const Finished ran =
        headroom({"run", "here.toml", "--no-plan", "--out", "runs", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
};

TEST_F(Export, WeightsWithAllThatIsNeededToUseThem) {
  ASSERT_EQ(run().exit_code, 0);
  const Finished finished = exported({"--out", "trial.safetensors"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("wrote trial.safetensors: "), std::string::npos) << finished.out;
  EXPECT_EQ(finished.err, "");

  const SafetensorsFile file(folder_ / "trial.safetensors");
  const fs::path best = run_folder() / "checkpoints/best";
  const SafetensorsFile model(best / "model.safetensors"), state(best / "state.safetensors");
  size_t averaged = 0;
  for (const TensorBytes& tensor : model.tensors()) {
    const TensorBytes* average = state.find("ema/" + tensor.name);
    averaged += average != nullptr ? 1 : 0;
    const auto* found = file.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(as_values<std::byte>(found->data), as_values<std::byte>((average != nullptr ? *average : tensor).data));
  }
  EXPECT_GT(averaged, 0u) << "the run keeps averages";
  const auto told = [&](const char* key) { return json::parse(file.metadata().at(key)); };
  EXPECT_EQ(file.metadata().at("model"), "trial_model");
  EXPECT_NE(file.metadata().at("options").find("dropout = 0.1"), std::string::npos);
  EXPECT_EQ(told("fields")[0].at("name"), "x");
  EXPECT_EQ(told("fields")[0].at("unit"), "V");
  EXPECT_EQ(told("fields")[0].at("shape"), json({6, 3}));
  EXPECT_EQ(told("outputs")[0].at("role"), "prediction");
  EXPECT_EQ(told("normalizer"), read_json(best / "checkpoint.json").at("normalizer"));
  EXPECT_EQ(told("run").at("id"), run_folder().filename().string());
}

TEST_F(Export, WhatItCannotWriteIsSaidInASentence) {
  ASSERT_EQ(run({"train.epochs=1"}).exit_code, 0);
  EXPECT_EQ(exported({"--format", "pdf", "--out", "x"}).exit_code, 2);
  EXPECT_EQ(exported({}).exit_code, 2) << "without --out";
  write_text(folder_ / "there", "mine");
  const Finished taken = exported({"--out", "there"});
  EXPECT_EQ(taken.exit_code, 2);
  EXPECT_NE(taken.err.find("there exists already; name another file with --out"), std::string::npos) << taken.err;
  EXPECT_EQ(read_text(folder_ / "there"), "mine");
  EXPECT_EQ(exported({"--checkpoint", "nowhere", "--out", "x"}).exit_code, 2);
  const Finished no_predict = exported({"--format", "torchscript", "--out", "x"});
  EXPECT_EQ(no_predict.exit_code, 2);
  EXPECT_NE(no_predict.err.find("model 'trial_model' cannot be written as TorchScript: its plugin offers no "
                                "headroom.predict/1"),
            std::string::npos)
      << no_predict.err;
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

// As the run passed over them.
TEST_F(Export, AProgramIsTriedOnSamplesThatCanBeRead) {
  train_predicting();
  const Finished finished = exported({"--format", "torchscript", "--out", "program.pt"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(fs::exists(folder_ / "program.pt"));
}

// Stand-ins for python3, which write and say what the script does.
TEST_F(Export, OtherFormatsComeThroughPythonOrAreASentence) {
  train_predicting();
  const auto through = [&](const std::string& format, const std::string& script) {
    fs::create_directories(folder_ / "bin");
    write_text(folder_ / "bin/python3", "#!/bin/sh\n" + script + "\n");
    fs::permissions(folder_ / "bin/python3", fs::perms::owner_all);
    return exported({"--format", format, "--out", "other"}, {"PATH=" + (folder_ / "bin").string() + ":/usr/bin:/bin"});
  };
  const auto expect_refused = [&](const Finished& finished, const std::string& sentence) {
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << finished.err;
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_EQ(entry.path().filename().string().find("other"), std::string::npos) << entry.path();
  };
  expect_refused(exported({"--format", "onnx", "--out", "other"}, {"PATH=" + (folder_ / "nothing").string()}),
                 "[export] --format onnx is written by python3 with torch and onnx, and python3 is not there: ");
  expect_refused(through("pt2", "exit 17"),
                 "[export] --format pt2 is written by python3 with torch, and torch is not there: install it");
  expect_refused(through("onnx", "exit 18"),
                 "and onnx is not there: install it (python3 -m venv .venv && "
                 ".venv/bin/pip install torch onnx && ");
  expect_refused(through("onnx", "[ -z \"$4\" ] && exit 0\necho half > \"$5\"\necho no such operator >&2\nexit 1"),
                 "[export] the model cannot be written as onnx: no such operator; export --format torchscript");
  const Finished made =
      through("onnx", "[ -z \"$4\" ] && exit 0\ncp \"$4\" \"$5\"\necho '{\"samples\": \"any\", \"difference\": 2e-8}'");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "wrote other: for any number of samples; off by 2.0e-08 of the largest value at most\n");
  EXPECT_EQ(read_text(folder_ / "other").substr(0, 2), "PK") << "the TorchScript program that python3 was given";
  const Finished there = through("onnx", "exit 0");
  EXPECT_EQ(there.exit_code, 2);
  EXPECT_NE(there.err.find("other exists already"), std::string::npos) << there.err;
}

TEST_F(Export, WhatPythonWritesGivesWhatTheModelGives) {
  if (std::system("python3 -c 'import torch' 2> /dev/null") != 0) GTEST_SKIP() << "no torch for python3 here";
  const bool has_onnx = std::system("python3 -c 'import onnx, numpy' 2> /dev/null") == 0;
  write_text(folder_ / "here.toml", small_policy);
  ASSERT_EQ(headroom({"run", "here.toml", "--no-plan", "--out", "runs"}).exit_code, 0);
  for (const std::string format : {"pt2", "onnx"}) {
    if (format == "onnx" && !has_onnx) continue;
    const Finished finished = exported({"--format", format, "--out", "other." + format});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.out.find("wrote other." + format + ": for "), std::string::npos) << finished.out;
    EXPECT_GT(fs::file_size(folder_ / ("other." + format)), 500u);
  }
  if (!has_onnx) GTEST_SKIP() << "no onnx for python3 here: pt2 alone was tried";
}

// ACT: cameras as bytes, joints that the source standardises, a backbone that the model freezes.
TEST_F(Export, AProgramOfAPolicy) {
  write_text(folder_ / "here.toml", small_policy);
  ASSERT_EQ(headroom({"run", "here.toml", "--no-plan", "--out", "runs"}).exit_code, 0);
  const Finished finished = exported({"--format", "torchscript", "--out", "policy.pt"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("wrote policy.pt: forward("), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("prediction, is_pad_hat"), std::string::npos) << finished.out;
  EXPECT_GT(fs::file_size(folder_ / "policy.pt"), 1000u);
}

}  // namespace
}  // namespace headroom
