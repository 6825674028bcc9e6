// What golden files cannot show: counts, groups, masks, units, the exact gradient, and the sentences for what does not
// fit.
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../models/mixed_precision.hpp"
#include "error.hpp"
#include "plugin_under_test.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

const Robot kRobot;
const std::string kStill = kTiny + "dropout = 0.0\n";

Demonstrations demonstrations(int64_t samples = 3) {
  Demonstrations batch = Demonstrations::random(samples, kRobot);
  batch.eps = torch::randn({samples, 32}, at::make_generator<at::CPUGeneratorImpl>(5));
  return batch;
}

std::string refusal(const std::string& options, const Robot& robot = kRobot) {
  try {
    make_policy(options, robot);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::bad_input);
    return error.what();
  }
  return "accepted";
}

TEST(ActPolicy, DefaultsAreThePublishedOnes) {
  const auto model = make_policy("", Robot{.cameras = 4, .height = 48, .width = 64, .joints = 14, .longest = 400});
  int64_t parameters = 0, buffers = 0, backbone = 0;
  for (const Parameter& each : model->parameters()) {
    if (each.kind == HR_PARAMETER) parameters += each.tensor->numel();
    if (each.kind == HR_BUFFER) buffers += each.tensor->numel();
    if (each.kind == HR_PARAMETER && each.group == "backbone") backbone += each.tensor->numel();
  }
  EXPECT_EQ(parameters, 83'923'087);
  EXPECT_EQ(buffers, 71'424);
  EXPECT_EQ(backbone, 11'166'912);
}

TEST(ActPolicy, OnlyWhatMattersIsTrained) {
  const auto model = make_policy(kTiny, kRobot), last = make_policy(kTiny + "decoder_output = \"last\"", kRobot);
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const Parameter& each = model->parameters()[i];
    EXPECT_EQ(each.inert, each.name.starts_with("transformer.decoder.layers.1.")) << each.name;
    EXPECT_FALSE(last->parameters()[i].inert) << each.name;
    if (each.kind == HR_PARAMETER && !each.inert) {
      EXPECT_EQ(each.trains(), !each.name.starts_with("is_pad_head.")) << each.name;
    }
  }
}

TEST(ActPolicy, TheBackboneHasALearningRateOfItsOwn) {
  const auto model = make_policy(kTiny + "lr_backbone = 3e-6", kRobot),
             frozen = make_policy(kTiny + "lr_backbone = 0.0", kRobot);
  int tensors = 0;
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const Parameter& each = model->parameters()[i];
    const bool backbone = each.kind == HR_PARAMETER && each.name.starts_with("backbones.");
    EXPECT_EQ(each.lr, backbone ? 3e-6 : 0.0) << each.name;
    EXPECT_EQ(each.group, backbone ? "backbone" : "") << each.name;
    if (backbone) {
      EXPECT_FALSE(frozen->parameters()[i].trains()) << each.name;
    }
    tensors += backbone ? 1 : 0;
  }
  EXPECT_EQ(tensors, 20);
}

TEST(ActPolicy, ParametersComeFromTheSeedAlone) {
  const auto first = make_policy(kTiny, kRobot, 11), second = make_policy(kTiny, kRobot, 11),
             other = make_policy(kTiny, kRobot, 12);
  for (const Parameter& each : first->parameters())
    EXPECT_TRUE(each.tensor->equal(parameter(*second, each.name))) << each.name;
  EXPECT_FALSE(parameter(*first, "query_embed.weight").equal(parameter(*other, "query_embed.weight")));
  // Kaiming-normal over 4 * 7 * 7 outputs.
  EXPECT_NEAR(parameter(*first, "backbones.0.0.body.conv1.weight").std().item<double>(), std::sqrt(2.0 / 196), 0.02);
}

TEST(ActPolicy, LossIsTheSumOverSamplesOfBothTerms) {
  const auto model = make_policy(kStill + "kl_weight = 3", kRobot);
  const Demonstrations batch = demonstrations();
  const StepResult result = step(*model, batch, kRobot);
  EXPECT_EQ(result.weight.item<double>(), 3.0);
  const at::Tensor valid = batch.is_pad.narrow(1, 0, 5).eq(0), mu = output(*model, result, "mu"),
                   logvar = output(*model, result, "logvar");
  const at::Tensor error =
      (output(*model, result, "prediction") - batch.action.narrow(1, 0, 5)).abs() * valid.unsqueeze(2);
  const double l1 = error.mean().item<double>();  // padded actions count as zero
  const double kl = (-0.5 * (1 + logvar - mu * mu - logvar.exp())).sum(1).mean().item<double>();
  EXPECT_NEAR(metric(*model, result, "l1"), l1, 1e-6);
  EXPECT_NEAR(metric(*model, result, "kl"), kl, 1e-5);
  EXPECT_NEAR(result.loss_sum.item<double>() / 3.0, l1 + 3.0 * kl, 1e-4);
}

TEST(ActPolicy, ErrorsOfJointsAreInTheirUnit) {
  Robot robot = kRobot;
  robot.channels = {{"waist", "rad", 0.5, 0.25}, {"elbow", "deg", -1.0, 30.0}, {"gripper", "", 0.5, 2.0}};
  const auto model = make_policy(kStill, robot);
  const Demonstrations batch = demonstrations();
  const StepResult result = step(*model, batch, robot);
  const at::Tensor valid = batch.is_pad.narrow(1, 0, 5).eq(0);
  const at::Tensor error =
      (output(*model, result, "prediction") - batch.action.narrow(1, 0, 5)).abs().index({valid}).mean(0);
  for (int64_t i = 0; i < 3; ++i) {
    const Channel& joint = robot.channels[static_cast<std::size_t>(i)];
    EXPECT_EQ(model->metrics()[static_cast<std::size_t>(2 + i)].unit, joint.unit);
    EXPECT_NEAR(metric(*model, result, "error_" + joint.name), error[i].item<double>() * joint.std, 1e-5 * joint.std);
  }
  EXPECT_EQ(make_policy(kStill, kRobot)->metrics()[2].name, "error_0");
}

TEST(ActPolicy, WhatIsPaddedDoesNotMatter) {
  const auto model = make_policy(kStill, kRobot);
  Demonstrations batch = demonstrations();
  const StepResult before = step(*model, batch, kRobot);
  batch.action.masked_fill_(batch.is_pad.ne(0).unsqueeze(2), 1e3);
  batch.action.slice(1, 5).fill_(NAN);  // behind the chunk
  const StepResult after = step(*model, batch, kRobot);
  EXPECT_TRUE(after.loss_sum.equal(before.loss_sum));
  EXPECT_TRUE(after.metrics.equal(before.metrics));
}

TEST(ActPolicy, DropoutIsOfTrainingAlone) {
  const auto model = make_policy(kTiny + "dropout = 0.3", kRobot), still = make_policy(kStill, kRobot);
  const Demonstrations batch = demonstrations();
  const at::Tensor expected = output(*still, step(*still, batch, kRobot, HR_EVAL), "prediction");
  EXPECT_TRUE(output(*model, step(*model, batch, kRobot, HR_EVAL), "prediction").equal(expected));
  const at::Tensor dropped = output(*model, step(*model, batch, kRobot, HR_TRAIN), "prediction");
  EXPECT_FALSE(dropped.allclose(expected));
  EXPECT_TRUE(dropped.equal(output(*model, step(*model, batch, kRobot, HR_TRAIN), "prediction")));
}

TEST(ActPolicy, TheLatentDrawIsTheSamplesOwn) {
  Robot robot = kRobot;
  robot.has_eps = false;
  const auto model = make_policy(kStill, robot);
  const Demonstrations batch = demonstrations();
  const at::Tensor whole = output(*model, step(*model, batch, robot, HR_EVAL), "prediction");
  EXPECT_TRUE(whole.equal(output(*model, step(*model, batch, robot, HR_EVAL), "prediction")));
  // The first sample keeps its draw in any company; the second one, come first, has the first one's key.
  EXPECT_TRUE(
      whole[0].allclose(output(*model, step(*model, batch.part(0, 1), robot, HR_EVAL), "prediction")[0], 1e-4, 1e-5));
  EXPECT_FALSE(
      whole[1].allclose(output(*model, step(*model, batch.part(1, 1), robot, HR_EVAL), "prediction")[0], 1e-4, 1e-5));
}

TEST(ActPolicy, FrozenNormsStayAsTheyAre) {
  const auto model = make_policy(kTiny, kRobot);
  std::vector<at::Tensor> before;
  for (const Parameter& each : model->parameters())
    if (each.kind == HR_BUFFER) before.push_back(each.tensor->clone());
  step(*model, demonstrations(), kRobot).loss_sum.backward();
  std::size_t i = 0;
  for (const Parameter& each : model->parameters())
    if (each.kind == HR_BUFFER) {
      EXPECT_TRUE(each.tensor->equal(before[i++])) << each.name;
    }
  EXPECT_EQ(i, 81u);
}

// Central differences in float64, in a few elements of every parameter, with dropout on.
void expect_exact_gradients(const std::string& options) {
  const auto model = make_policy(options, kRobot);
  model->to(at::kCPU, at::kDouble);
  const Demonstrations batch = demonstrations(2).to(at::kDouble);
  for (Parameter& each : model->parameters())
    if (each.kind == HR_PARAMETER) each.tensor->requires_grad_(each.trains());
  step(*model, batch, kRobot).loss_sum.backward();
  const torch::NoGradGuard no_grad;
  const double h = 1e-6;
  for (const Parameter& each : model->parameters()) {
    if (!each.trains()) continue;
    const at::Tensor gradient = each.tensor->grad().reshape({-1});
    at::Tensor values = each.tensor->view({-1});
    const double scale = gradient.abs().max().item<double>();
    for (const int64_t element : {int64_t{0}, values.numel() / 2, values.numel() - 1}) {
      const double value = values[element].item<double>();
      values[element] = value + h;
      const double above = step(*model, batch, kRobot).loss_sum.item<double>();
      values[element] = value - h;
      const double below = step(*model, batch, kRobot).loss_sum.item<double>();
      values[element] = value;
      EXPECT_NEAR(gradient[element].item<double>(), (above - below) / (2 * h), 1e-5 * scale + 1e-6)
          << each.name << " element " << element;
    }
  }
}

TEST(ActPolicy, GradientIsExact) { expect_exact_gradients(kTiny + "dropout = 0.2"); }
TEST(ActPolicy, GradientIsExactPreNorm) { expect_exact_gradients(kTiny + "dropout = 0.2\npre_norm = true"); }
TEST(ActPolicy, GradientIsExactLastLayer) {
  expect_exact_gradients(kStill + "decoder_output = \"last\"\nkl_weight = 0.5");
}

TEST(ActPolicy, PreNormHasTheNormsBehindItsEncoders) {
  const auto model = make_policy(kTiny + "pre_norm = true", kRobot);
  EXPECT_NO_THROW(parameter(*model, "encoder.norm.weight"));
  EXPECT_NO_THROW(parameter(*model, "transformer.encoder.norm.bias"));
  EXPECT_THROW(parameter(*make_policy(kTiny, kRobot), "encoder.norm.weight"), std::out_of_range);
}

TEST(ActPolicy, FieldsThatDoNotSuitAreRefused) {
  EXPECT_THAT(refusal(kTiny, Robot{.longest = 4}),
              HasSubstr("model.options.chunk_size is 5, but the longest episode has 4 steps: set it to 4 or less"));
  EXPECT_THAT(refusal(kTiny + "decoder_output = \"second\""), HasSubstr("decoder_output"));
  EXPECT_THAT(refusal("hidden_dim = 100\nnheads = 8"),
              HasSubstr("model.options.hidden_dim is 100: it must be a multiple of 4 and of nheads = 8"));
  EXPECT_THAT(refusal("chunk_size = 5\nbackbone_widths = [8, 16]"),
              HasSubstr("has 2 numbers: the backbone has four stages"));
  EXPECT_THAT(refusal("chunk_size = 0"), HasSubstr("chunk_size"));
}

TEST(ActPolicy, WorksInMixedPrecision) {
  for (const std::string& options : {kTiny + "dropout = 0.2", kTiny + "dropout = 0.2\npre_norm = true"}) {
    const auto model = make_policy(options, kRobot);
    Demonstrations batch = Demonstrations::random(3, kRobot);
    batch.eps = torch::ones({3, 32});
    expect_mixed_precision_to_work(*model, [&](Model& under_test) { return step(under_test, batch, kRobot); });
  }
}

}  // namespace
}  // namespace headroom
