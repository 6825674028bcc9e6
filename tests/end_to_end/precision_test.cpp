// Runs in mixed precision: they train as float32 does, nothing is left out where float16 overflows, and they resume.
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Precision : public TrialRun {
 protected:
  Json summary_of(const std::vector<std::string>& set, const std::string& out) {
    const Finished finished = run(set, out);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return read_json(run_folder(out) / "summary.json");
  }
  std::vector<Json> events(const std::string& out, const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& event : read_json_lines(run_folder(out) / "events.jsonl"))
      if (event.at("kind") == kind) found.push_back(event);
    return found;
  }
};

TEST_F(Precision, MixedTrainsAsFloat32DoesUpToItsRounding) {
  const Json exact = summary_of({}, "fp32");
  const double loss = exact.at("metrics").at("val/loss");
  for (const std::string precision : {"bf16", "fp16"}) {
    const Json mixed = summary_of({"train.precision=" + precision}, precision);
    EXPECT_EQ(mixed.at("steps"), 45) << precision;
    EXPECT_EQ(mixed.at("skipped_windows"), 0) << precision;
    EXPECT_NE(mixed.at("identity"), exact.at("identity")) << precision;
    EXPECT_NE(mixed.at("metrics").at("val/loss"), loss) << precision << " is float32";
    EXPECT_NEAR(mixed.at("metrics").at("val/loss"), loss, 2e-2 * loss) << precision;
    const std::string header = read_text(run_folder(precision) / "checkpoints/last/model.safetensors").substr(0, 2000);
    EXPECT_NE(header.find("\"F32\""), std::string::npos) << precision;
    EXPECT_EQ(header.find("F16\""), std::string::npos) << precision << " is kept in its checkpoint";
  }
}

TEST_F(Precision, WhatOverflowsInFloat16IsComputedAgain) {
  const Finished finished = run({"train.precision=fp16", "model.options.loss_factor=1000"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto lowered = events("runs", "loss_scale");
  ASSERT_FALSE(lowered.empty());
  EXPECT_EQ(lowered.front().at("was"), 65536.0);
  for (const Json& event : lowered) EXPECT_LT(event.at("is"), event.at("was"));
  EXPECT_NE(finished.err.find("gradients overflow float16 at a loss scale of 65536: the window is computed again at "),
            std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("train.precision = \"fp16\" is for GPUs"), std::string::npos) << finished.err;
  EXPECT_TRUE(events("runs", "nonfinite").empty());
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 45);
}

TEST_F(Precision, ALossThatIsNotFiniteIsNoOverflow) {
  const std::vector<std::string> set = {"train.precision=fp16", "data.options.nan_at=[5]", "train.epochs=1"};
  EXPECT_EQ(run(set, "stops").exit_code, 7);
  const Json summary = [&] {
    auto skipping = set;
    skipping.emplace_back("train.on_nonfinite=skip");
    return summary_of(skipping, "skips");
  }();
  EXPECT_EQ(summary.at("skipped_windows"), 1);
  EXPECT_EQ(summary.at("steps"), 14);
}

TEST_F(Precision, Float16ResumesBitEqual) {
  const std::vector<std::string> set = {"train.precision=fp16", "model.options.loss_factor=1000",
                                        "model.options.dropout=0.2"};
  summary_of(set, "undisturbed");
  std::vector<std::string> words = run_words(set, "resumed");
  words.insert(words.end(), {"--until-epoch", "1"});
  ASSERT_EQ(headroom(words).exit_code, 75);
  const Finished resumed =
      headroom({"run", "--resume", run_folder("resumed").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const fs::path last = "checkpoints/last";
  for (const char* file : {"model.safetensors", "state.safetensors"}) {
    EXPECT_EQ(read_text(run_folder("undisturbed") / last / file) == read_text(run_folder("resumed") / last / file),
              true)
        << file << " differs";
  }
  const auto scale = [&](const std::string& out) {
    return read_json(run_folder(out) / last / "checkpoint.json").at("position").at("loss_scale");
  };
  EXPECT_EQ(scale("resumed"), scale("undisturbed"));
  EXPECT_LT(scale("resumed").at(0).get<double>(), 65536.0);
  EXPECT_EQ(events("resumed", "loss_scale").size(), events("undisturbed", "loss_scale").size());
}

TEST_F(Precision, IsRefusedWhereTheModelDoesNotWorkInIt) {
  write_text(folder_ / "odd.toml", R"(experiment.name = "odd"
model.plugin = "odd_model"
data.source = "trial_source"
train.precision = "bf16"
)");
  for (const std::string command : {"validate", "run"}) {
    const Finished finished = headroom({command, "odd.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    EXPECT_EQ(finished.exit_code, 2) << command;
    EXPECT_NE(finished.err.find("model 'odd_model' does not work in \"bf16\": use \"fp32\" or \"fp64\""),
              std::string::npos)
        << finished.err;
    EXPECT_FALSE(fs::exists(folder_ / "runs")) << command;
  }
}

}  // namespace
}  // namespace headroom
