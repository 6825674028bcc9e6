// Clips of pictures, from made data to predicted files; and a model that can compute again what it does not keep.
#include <cmath>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kClips = R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1
[model]
plugin = "spike_vrt"
[model.options]
fusion = "concat"
depths = [2, 2, 2, 2, 2, 2, 2, 1]
embed_dims = [8, 8, 8, 8, 8, 8, 8, 8]
num_heads = [2, 2, 2, 2, 2, 2, 2, 2]
window_size = [2, 4, 4]
mul_attn_ratio = 0.5
deformable_groups = 2
indep_reconsts = []
fix_iters = 0
[data]
source = "spike_hdf5"
num_workers = 0
split = { train = 0.5, val = 0.5, test = 0.0 }
[data.options]
path = "made"
clip_length = 3
crop_size = 64
[data.synth]
sequences = 2
frames = 4
height = 72
width = 64
bins = 2
[train]
epochs = 1
max_steps = 2
batch_size = 1
)";

class Pictures : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    write_text(folder_ / "clips.toml", kClips);
  }
  Finished train(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run", "clips.toml", "--out", out});
    return headroom_program(std::move(more), here({"XDG_CACHE_HOME=" + (folder_ / "cache").string()}));
  }
  Finished predict(const std::string& input, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"predict", run_folder().string(), "--input", input});
    return headroom(std::move(more));
  }
};

TEST_F(Pictures, EveryFrameOfASequence) {
  const Finished trained = train("runs", {"--no-plan"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Finished finished = predict("made/seq_0001.hdf5", {"--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json told = Json::parse(finished.out);
  EXPECT_EQ(told.at("horizon"), 3);
  ASSERT_EQ(told.at("steps").size(), 4u);
  EXPECT_EQ(told.at("before").at("field"), "blur");
  double sum = 0;
  for (const Json& step : told.at("steps")) sum += step.at("psnr_db").get<double>();
  EXPECT_NEAR(told.at("psnr_db").get<double>(), sum / 4, 1e-9);
  EXPECT_GT(told.at("before").at("psnr_db").get<double>(), 10.0);

  const fs::path out = run_folder() / "predictions/seq_0001";
  for (const char* name : {"000000.png", "000001.png", "000002.png", "000003.png"}) {
    const std::string png = read_text(out / name);
    ASSERT_GT(png.size(), 24u) << name;
    EXPECT_EQ(png.substr(1, 3), "PNG");
    EXPECT_EQ(static_cast<uint8_t>(png[19]), 64) << "whole frames, wider than the crop of training is not";
    EXPECT_EQ(static_cast<uint8_t>(png[23]), 72);
  }
  EXPECT_FALSE(fs::exists(out / "000004.png"));
  const std::string page = read_text(out / "prediction.html");
  for (const char* text : {"Before and after", "data:image/png;base64,", "PSNR", "blur"})
    EXPECT_NE(page.find(text), std::string::npos) << text;

  const Finished refused = predict("clips.toml");
  EXPECT_EQ(refused.exit_code, 4) << refused.err;
  EXPECT_NE(refused.err.find("it is no sequence"), std::string::npos) << refused.err;
}

#if !defined(__SANITIZE_ADDRESS__)  // what the sanitizer holds back is more than what is computed again
// What is computed again costs time and no mathematics: sums of gradients in another order are all that differs.
TEST_F(Pictures, WhereMemoryIsShortThePlanComputesAgain) {
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "clips.toml", "--json"});
    const Finished finished =
        headroom_program(std::move(more), here({"XDG_CACHE_HOME=" + (folder_ / "cache").string()}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out, nullptr, /*allow_exceptions=*/false);
  };
  const auto peak = [](const Json& of) { return of.at("predicted_peak_bytes").get<int64_t>(); };
  const int64_t kept = peak(plan({"--set", "memory.recompute=none"}));
  const int64_t least = peak(plan({"--set", "memory.recompute=[\"attention\", \"mlp\", \"warping\"]"}));
  ASSERT_LT(least, kept - (8 << 20));
  const std::string limit = std::to_string((kept + least) / 2);
  const Json chosen = plan({"--limit", limit});
  EXPECT_TRUE(chosen.at("fits"));
  EXPECT_FALSE(chosen.at("recompute").empty());
  EXPECT_TRUE(plan({}).at("recompute").empty()) << "nothing is computed again where memory is not short";

  const Finished large = train("large"), small = train("small", {"--set", "memory.limit=" + limit});
  ASSERT_EQ(large.exit_code, 0) << large.err;
  ASSERT_EQ(small.exit_code, 0) << small.err;
  const Json summary = read_json(run_folder("small") / "summary.json");
  EXPECT_EQ(summary.at("memory").at("recompute"), chosen.at("recompute"));
  const Json metrics = summary.at("metrics"), expected = read_json(run_folder("large") / "summary.json").at("metrics");
  for (const char* name : {"train/loss", "val/loss", "val/psnr"}) {
    const double value = expected.at(name).get<double>();
    EXPECT_NEAR(metrics.at(name).get<double>(), value, 1e-5 * value) << name;
  }
}
#endif

TEST_F(Pictures, WhatAModelCannotComputeAgainIsRefused) {
  const Finished finished = train("runs", {"--set", "memory.recompute=[\"atention\"]"});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_NE(finished.err.find("memory.recompute names \"atention\", but the model can recompute only"),
            std::string::npos)
      << finished.err;
}

}  // namespace
}  // namespace headroom
