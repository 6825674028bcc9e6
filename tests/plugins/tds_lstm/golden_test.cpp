// Every golden case of the reference emg2pose, through the engine of `headroom parity`: predictions, loss, metrics,
// gradients, and five steps of Adam. Two cases live in tests/golden; the others run where the shared golden folder lies
// beside the source tree. Gradients of the reference are held against the plugin in float64, and its float32 against
// its own float64: a ReLU that is zero but for rounding is on either side in float32, as the processor has it.
#include <cmath>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

#include "../models/golden_files.hpp"
#include "../models/kinks.hpp"
#include "plugin_under_test.hpp"
#include "train/parity.hpp"

namespace headroom {
namespace {

const std::string kLargest = "full_tracking_vemg2pose_T2790";

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto found = golden_file("tds_lstm", GetParam() + ".safetensors");
    if (!found)
      GTEST_SKIP() << GetParam() << " is not in tests/golden, and there is no ../shared beside the source tree";
    file_ = *found;
    expected_ = load(file_);
  }

  std::filesystem::path options_file() const {
    return std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/golden/tds_lstm" / (GetParam() + ".toml");
  }

  Tensors run(bool gradients, bool fp64) const {
    ParityRequest request;
    request.model = plugin_file("tds_lstm").string();
    request.options = options_file();
    request.weights = {TensorSelection::parse(file_.string() + ":w/")};
    request.batch = TensorSelection::parse(file_.string() + ":in/");
    request.add_field("valid=no_ik_failure");
    request.add_transposition("emg=0,2,1");
    request.add_transposition("joint_angles=0,2,1");
    request.gradients = gradients;
    request.fp64 = fp64;
    request.out = std::filesystem::path(testing::TempDir()) / (GetParam() + "." + std::to_string(getpid()));
    run_parity(request);
    Tensors result = load(request.out);
    std::filesystem::remove(request.out);
    return result;
  }

  // With gradients. One unit of the largest network was on the other side in the reference's float32: its value is
  // -1.7e-7 of the largest of its layer.
  Tensors in_double_as_the_reference() const {
    const auto in_double = [this] { return run(/*gradients=*/true, /*fp64=*/true); };
    if (GetParam() != kLargest) return in_double();
    return Kinks::turn("relu", 11, 1394, in_double);  // the last encoder block, sample 0, time 5, feature 114
  }

  double expected(const std::string& key) const { return expected_.at(key).to(at::kDouble).item<double>(); }

  std::filesystem::path file_;
  Tensors expected_;
};

double mean_loss(const Tensors& result) { return (result.at("loss_sum") / result.at("weight")).item<double>(); }

TEST_P(Golden, ForwardLossAndMetrics) {
  const Tensors result = run(/*gradients=*/false, /*fp64=*/false);
  EXPECT_LE(relative_error(result.at("prediction").transpose(1, 2), expected_.at("out/pred")), 1e-5);
  EXPECT_TRUE(result.at("mask").ne(0).equal(expected_.at("out/mask").ne(0)));
  EXPECT_NEAR(mean_loss(result), expected("loss/mae"), 1e-6);

  int metrics = 0;
  for (const auto& [key, tensor] : expected_) {
    if (!key.starts_with("metric/") || key == "metric/fingertip_distance" || key == "metric/landmark_distance")
      continue;
    ++metrics;
    if (key == "metric/acc" || key == "metric/jerk") continue;  // see HigherDifferences
    EXPECT_NEAR(result.at(key).item<double>(), expected(key), 1e-5 * std::abs(expected(key))) << key;
  }
  EXPECT_EQ(metrics, 12);
}

TEST_P(Golden, DoublePrecision) {
  const Tensors result = run(/*gradients=*/false, /*fp64=*/true);
  EXPECT_LE(relative_error(result.at("prediction").transpose(1, 2), expected_.at("out/pred_f64")), 1e-12);
  EXPECT_NEAR(mean_loss(result), expected("loss/mae_f64"), 1e-12);
}

TEST_P(Golden, GradientsInDouble) {
  if (GetParam() == kLargest) {
    KINKS_OR_SKIP();
  }
  const Tensors result = in_double_as_the_reference();
  int gradients = 0;
  for (const auto& [key, tensor] : expected_) {
    if (!key.starts_with("grad/")) continue;
    ++gradients;
    EXPECT_LE(relative_error(result.at(key), tensor), 1e-5) << key;
  }
  EXPECT_GE(gradients, 9);
}

// Of small predictions they are mostly rounding in float32, the reference's too: so those of its float64 predictions.
TEST_P(Golden, HigherDifferences) {
  const Tensors result = run(/*gradients=*/false, /*fp64=*/true);
  const at::Tensor predicted = expected_.at("out/pred_f64"), counts = expected_.at("out/mask").ne(0);
  for (const auto& [key, order] : {std::pair{"metric/acc", 2}, {"metric/jerk", 3}}) {
    at::Tensor valid = counts;
    for (int i = 0; i < order; ++i)
      valid = valid.narrow(1, 1, valid.size(1) - 1).logical_and(valid.narrow(1, 0, valid.size(1) - 1));
    const at::Tensor values = predicted.diff(order).abs().masked_select(valid.unsqueeze(1));
    const double mean = values.mean().item<double>() * 2000.0;  // one factor for every order, as the reference has it
    EXPECT_NEAR(result.at(key).item<double>(), mean, 1e-9 * mean) << key;
    if (mean < 1e-3) continue;
    EXPECT_NEAR(mean, expected(key), 2e-3 * mean) << key << " of the reference, where float32 has digits for it";
  }
}

TEST_P(Golden, GradientsInFloat) {
  KINKS_OR_SKIP();
  Kinks kinks;
  const Tensors narrow = kinks.note([this] { return run(/*gradients=*/true, /*fp64=*/false); }),
                wide = kinks.follow([this] { return run(/*gradients=*/true, /*fp64=*/true); });
  EXPECT_LE(kinks.farthest(), 1e-6);
  for (const auto& [key, tensor] : wide) {
    if (!key.starts_with("grad/")) continue;
    EXPECT_LE(relative_error(narrow.at(key), tensor), 2e-5) << key;
  }
}

class GoldenTraining : public Golden {};

// Adam as the reference ran it, clipping included.
TEST_P(GoldenTraining, FiveStepsOfAdam) {
  const at::Tensor emg = expected_.at("in/emg").transpose(1, 2).contiguous();
  const at::Tensor angles = expected_.at("in/joint_angles").transpose(1, 2).contiguous();
  const EmgRecording recording{emg.size(1), emg.size(2), angles.size(2)};
  std::ostringstream options;
  options << *toml::parse_file(options_file().string())["model"]["options"].as_table();
  const std::unique_ptr<Model> model = make_model(options.str(), recording);
  std::vector<at::Tensor> weights;
  for (Parameter& parameter : model->parameters()) {
    const torch::NoGradGuard no_grad;
    parameter.tensor->copy_(expected_.at("w/" + parameter.name));
    weights.push_back(*parameter.tensor);
  }
  const double clip = std::stod(SafetensorsFile(file_).metadata().at("train_clip"));
  torch::optim::Adam adam(weights, torch::optim::AdamOptions(1e-3));
  for (int64_t i = 0; i < 5; ++i) {
    adam.zero_grad();
    const StepResult result = step(*model, {emg, angles, expected_.at("in/no_ik_failure")});
    const at::Tensor loss = result.loss_sum / result.weight;
    loss.backward();
    EXPECT_NEAR(loss.item<double>(), expected_.at("train/loss")[i].item<double>(), 1e-5) << "step " << i;
    const double norm = torch::nn::utils::clip_grad_norm_(weights, clip);
    EXPECT_NEAR(norm, expected_.at("train/grad_norm_before_clip")[i].item<double>(), 1e-4 * norm) << "step " << i;
    adam.step();
  }
  for (const Parameter& parameter : model->parameters()) {
    const auto after = expected_.find("train/w_after/" + parameter.name);
    if (after == expected_.end()) continue;
    // Adam turns rounding into steps where a gradient is nearly zero: five steps of 1e-3 may differ there.
    EXPECT_LE((*parameter.tensor - after->second).abs().mean().item<double>(), 1e-5) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(TdsLstm, Golden,
                         testing::Values(kLargest, "small_track_vel_lstm64_T2790", "small_track_pos_lstm64_T2790",
                                         "small_reg_pos_mlp64_T2790", "small_track_vel_lstm64_T2290_win500",
                                         "small_track_vel_lstm64_masked_T2790", "seed500_lstm128x2_pos"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(TdsLstm, GoldenTraining,
                         testing::Values("small_track_vel_lstm64_T2790", "seed500_lstm128x2_pos"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace headroom
