// The whole policy against the reference: outputs, losses, gradients, five steps of AdamW, names and shapes.
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "golden_files.hpp"
#include "plugin_under_test.hpp"
#include "train/optimizer.hpp"

namespace headroom {
namespace {

const std::string kNarrow = R"(
chunk_size = 5
hidden_dim = 32
dim_feedforward = 64
nheads = 8
enc_layers = 2
dec_layers = 2
backbone_widths = [8, 16, 32, 64]
dropout = 0.0
)";
constexpr int64_t kWidth = 32;

// The policy of a golden file with its weights, and its batch.
struct Case {
  explicit Case(const Tensors& golden, const std::string& options = kNarrow, at::ScalarType dtype = at::kFloat) {
    robot = {golden.at("in.image_u8").size(1), 64, 96, 14, golden.at("in.actions").size(1)};
    model = make_policy(options, robot);
    model->to(at::kCPU, dtype);
    for (Parameter& parameter : model->parameters()) {
      if (parameter.kind == HR_PARAMETER) parameter.tensor->requires_grad_(parameter.trains());
      if (parameter.kind == HR_DERIVED) continue;
      const torch::NoGradGuard no_grad;
      parameter.tensor->copy_(golden.at("w." + parameter.name));
    }
    batch = Demonstrations{golden.at("in.image_u8"), golden.at("in.qpos"), golden.at("in.actions"),
                           golden.at("in.is_pad"), golden.at("in.eps")}
                .to(dtype);
  }
  StepResult run(hr_mode mode = HR_TRAIN) { return step(*model, batch, robot, mode); }

  Robot robot;
  std::unique_ptr<Model> model;
  Demonstrations batch;
};

class GoldenPolicy : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPolicy, OutputsAndLosses) {
  GOLDEN_OR_SKIP(golden, GetParam());
  Case policy(golden);
  for (const hr_mode mode : {HR_TRAIN, HR_EVAL}) {
    const StepResult result = policy.run(mode);
    expect_close(output(*policy.model, result, "prediction"), golden.at("out.a_hat"), "a_hat");
    expect_close(output(*policy.model, result, "is_pad_hat"), golden.at("out.is_pad_hat"), "is_pad_hat");
    expect_close(output(*policy.model, result, "mu"), golden.at("out.mu"), "mu");
    expect_close(output(*policy.model, result, "logvar"), golden.at("out.logvar"), "logvar");
    expect_close(output(*policy.model, result, "target"), golden.at("mid.actions"), "actions");
    const at::Tensor loss = result.loss_sum / result.weight;
    expect_close(loss, golden.at("out.loss")[0], "loss", 0.0, 1e-5);
    EXPECT_NEAR(metric(*policy.model, result, "l1"), golden.at("out.l1").item<double>(), 1e-5);
    EXPECT_NEAR(metric(*policy.model, result, "kl"), golden.at("out.kl").item<double>(), 1e-4);
  }
}

TEST_P(GoldenPolicy, PredictsFromInputsAlone) {
  GOLDEN_OR_SKIP(golden, GetParam());
  Case policy(golden);
  const std::vector<uint64_t> keys(static_cast<std::size_t>(policy.batch.image.size(0)), 0);
  for (const bool shown : {true, false}) {
    if (!shown) policy.batch.action = policy.batch.is_pad = at::Tensor();
    const std::vector<at::Tensor> outputs = policy.model->predict(0, keys, policy.batch.fields(policy.robot));
    expect_close(outputs[0], golden.at("eval.a_hat"), "a_hat");
    expect_close(outputs[3], golden.at("eval.is_pad_hat"), "is_pad_hat");
    for (const std::size_t needs_target : {1, 2, 4, 5}) EXPECT_FALSE(outputs[needs_target].defined());
  }
  EXPECT_EQ(policy.model->predictor()->target_field, std::string("action"));
  EXPECT_EQ(policy.model->predictor()->ensemble_decay, 0.01);
}

TEST_P(GoldenPolicy, DoublePrecision) {
  GOLDEN_OR_SKIP(golden, GetParam());
  Case policy(golden, kNarrow, at::kDouble);
  const StepResult result = policy.run();
  // README: inputs were cast up. Images may have been divided by 255 before that, in float32.
  expect_close(output(*policy.model, result, "prediction"), golden.at("out64.a_hat"), "a_hat", 1e-6, 0.0);
  expect_close(output(*policy.model, result, "mu"), golden.at("out64.mu"), "mu", 1e-12, 0.0);
  expect_close(output(*policy.model, result, "logvar"), golden.at("out64.logvar"), "logvar", 1e-12, 0.0);
  expect_close(result.loss_sum / result.weight, golden.at("out64.loss")[0], "loss", 1e-6, 0.0);
}

// Rows whose gradient is mathematically zero: the reference holds rounding noise there.
at::Tensor without_noise(const std::string& name, const at::Tensor& gradient) {
  at::Tensor kept = gradient.detach().clone();
  const bool first_self_attention = name.starts_with("transformer.decoder.layers.0.self_attn.");
  if (first_self_attention && name.ends_with("in_proj_weight")) kept.zero_();
  if (name.ends_with("in_proj_bias"))
    kept.narrow(0, first_self_attention ? 0 : kWidth, first_self_attention ? 2 * kWidth : kWidth).zero_();
  return kept;
}

TEST_P(GoldenPolicy, Gradients) {
  GOLDEN_OR_SKIP(golden, GetParam());
  Case policy(golden);
  const StepResult result = policy.run();
  (result.loss_sum / result.weight).backward();
  int compared = 0;
  for (const Parameter& parameter : policy.model->parameters()) {
    const auto expected = golden.find("g." + parameter.name);
    const at::Tensor& gradient = parameter.tensor->grad();
    if (parameter.inert) {
      EXPECT_FALSE(gradient.defined()) << parameter.name;
      EXPECT_EQ(expected->second.abs().max().item<double>(), 0.0) << parameter.name;
    } else if (expected == golden.end()) {
      EXPECT_FALSE(gradient.defined()) << parameter.name << " has no gradient in the reference";
    } else {
      ASSERT_TRUE(gradient.defined()) << parameter.name;
      expect_close_gradient(without_noise(parameter.name, gradient), without_noise(parameter.name, expected->second),
                            parameter.name);
      const at::Tensor norm = gradient.norm(2, at::kDouble);
      const double wanted = golden.at("gn." + parameter.name).item<double>();
      if (wanted > 1e-6) {
        EXPECT_NEAR(norm.item<double>(), wanted, 1e-5 * wanted) << parameter.name;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
}

// The layers that do not matter, run and differentiated: `last` of a decoder of one layer is `first` of two.
TEST_P(GoldenPolicy, OneLayerIsTheFirstOfTwo) {
  GOLDEN_OR_SKIP(golden, GetParam());
  std::string one = kNarrow;
  one.replace(one.find("dec_layers = 2"), 14, "dec_layers = 1\ndecoder_output = \"last\"");
  Case policy(golden, one);
  expect_close(output(*policy.model, policy.run(), "prediction"), golden.at("out.a_hat"), "a_hat");
}

// The second layer's output, seen through the same heads.
TEST_P(GoldenPolicy, LastLayer) {
  GOLDEN_OR_SKIP(golden, GetParam());
  Case policy(golden, kNarrow + "decoder_output = \"last\"");
  const at::Tensor hidden = golden.at("mid.hs")[1];
  expect_close(output(*policy.model, policy.run(), "prediction"),
               at::linear(hidden, golden.at("w.action_head.weight"), golden.at("w.action_head.bias")), "a_hat");
  for (const Parameter& parameter : policy.model->parameters()) EXPECT_FALSE(parameter.inert) << parameter.name;
}

INSTANTIATE_TEST_SUITE_P(ActPolicy, GoldenPolicy,
                         testing::Values("a_small_1cam_narrow.safetensors", "b_small_2cam_narrow.safetensors"),
                         [](const auto& test) { return test.param.substr(0, 12); });

// What the host gives a run whose optimizer is AdamW at 1e-3 and whose backbone has 1e-4.
TEST(ActPolicyGolden, FiveStepsOfAdamW) {
  GOLDEN_OR_SKIP(start, "a_small_1cam_narrow.safetensors");
  GOLDEN_OR_SKIP(golden, "g_adamw_5steps.safetensors");
  constexpr double lr = 1e-3, decay = 1e-2;
  Case policy(start, kNarrow + "lr_backbone = 1e-4", at::kDouble);
  Optimizer optimizer({.name = "adamw", .lr = lr, .weight_decay = decay}, 0.0, policy.model->parameters());
  for (int64_t i = 0; i < 5; ++i) {
    policy.batch.eps = golden.at("in.eps")[i].to(at::kDouble);
    for (Parameter& parameter : policy.model->parameters()) parameter.tensor->mutable_grad() = at::Tensor();
    const StepResult result = policy.run();
    const at::Tensor expected = golden.at("out64.losses")[i];
    EXPECT_NEAR(metric(*policy.model, result, "l1"), expected[0].item<double>(), 1e-6) << "step " << i;
    EXPECT_NEAR(metric(*policy.model, result, "kl"), expected[1].item<double>(), 1e-6) << "step " << i;
    (result.loss_sum / result.weight).backward();
    optimizer.step(lr, i);
  }
  int compared = 0;
  for (const Parameter& parameter : policy.model->parameters()) {
    const auto after = golden.find("w5_64." + parameter.name);
    if (after == golden.end()) continue;
    at::Tensor ours = parameter.tensor->detach().clone();
    // The reference trains these layers on zero gradients: their weights decay, and nothing else.
    if (parameter.inert) ours *= std::pow(1.0 - lr * decay, 5);
    expect_close(without_noise(parameter.name, ours), without_noise(parameter.name, after->second), parameter.name,
                 1e-7, 0.0);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(ActPolicyGolden, NamesAndShapesOfTheReference) {
  std::ifstream file(std::filesystem::path(HEADROOM_SOURCE_DIR) /
                     "tests/golden/act_policy/state_dict_ref_chunk20.json");
  std::map<std::string, std::vector<int64_t>> expected, found;
  for (const auto& entry : nlohmann::json::parse(file)) expected[entry[0]] = entry[1].get<std::vector<int64_t>>();
  const auto model = make_policy("chunk_size = 20", Robot{.height = 120, .width = 160, .joints = 14, .longest = 20});
  int64_t parameters = 0, live = 0;
  for (const Parameter& parameter : model->parameters()) {
    if (parameter.kind != HR_DERIVED) found[parameter.name] = parameter.tensor->sizes().vec();
    if (parameter.kind == HR_PARAMETER) parameters += parameter.tensor->numel();
    if (parameter.trains()) live += parameter.tensor->numel();
  }
  EXPECT_EQ(found.size(), 344u);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(parameters, 83'882'127);
  EXPECT_EQ(live, 83'882'127 - 32'308'992 - 513) << "dead decoder layers and is_pad_head have no gradient and no state";
}

}  // namespace
}  // namespace headroom
