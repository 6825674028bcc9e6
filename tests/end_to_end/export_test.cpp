// `headroom export`: what a run leaves for other programs.
#include "../runner/record/tensor_values.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Export : public TrialRun {
 protected:
  Finished exported(std::vector<std::string> more) const {
    more.insert(more.begin(), {"export", run_folder().string()});
    more.insert(more.end(), {"--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    return headroom(std::move(more));
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
  for (const std::string format : {"onnx", "pt2"}) {
    const Finished finished = exported({"--format", format, "--out", "x"});
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_NE(finished.err.find("[export] --format " + format + " needs Python's exporter"), std::string::npos)
        << finished.err;
  }
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
  const Finished finished = exported({"--format", "torchscript", "--out", "program.pt"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(fs::exists(folder_ / "program.pt"));
}

// ACT: cameras as bytes, joints that the source standardises, a backbone that the model freezes.
TEST_F(Export, AProgramOfAPolicy) {
  write_text(folder_ / "here.toml", R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1
[model]
plugin = "act_policy"
[model.options]
chunk_size = 5
hidden_dim = 16
dim_feedforward = 24
nheads = 4
enc_layers = 1
dec_layers = 1
backbone_widths = [4, 6, 8, 10]
[data]
source = "dual_arm_hdf5"
num_workers = 0
[data.options]
path = "made"
samples_per_episode = 4
[data.synth]
episodes = 3
steps = 17
cameras = 2
height = 24
width = 32
[train]
epochs = 1
batch_size = 4
)");
  ASSERT_EQ(headroom({"run", "here.toml", "--no-plan", "--out", "runs"}).exit_code, 0);
  const Finished finished = exported({"--format", "torchscript", "--out", "policy.pt"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("wrote policy.pt: forward("), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("prediction, is_pad_hat"), std::string::npos) << finished.out;
  EXPECT_GT(fs::file_size(folder_ / "policy.pt"), 1000u);
}

}  // namespace
}  // namespace headroom
