// What golden files cannot show: the split of a batch, stochastic depth, groups, metrics, recomputation, and the
// sentences for what does not fit.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "../models/mixed_precision.hpp"
#include "error.hpp"
#include "plugin_under_test.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

const Camera kCamera;

std::string refusal(const std::string& options, const Camera& camera = kCamera) {
  try {
    make_network(options, camera);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::bad_input);
    return error.what();
  }
  return "accepted";
}

// Gradients of the loss summed over parts of the batch, in float64.
std::vector<at::Tensor> gradients(Model& model, const Clips& clips, const Camera& camera, int64_t part) {
  for (Parameter& each : model.parameters()) each.tensor->mutable_grad() = at::Tensor();
  for (int64_t first = 0; first < clips.blur.size(0); first += part)
    step(model, clips.part(first, part), camera, HR_TRAIN, first).loss_sum.backward();
  std::vector<at::Tensor> all;
  for (const Parameter& each : model.parameters())
    if (each.trains()) all.push_back(each.tensor->grad());
  return all;
}

double difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double scale = a[i].abs().max().item<double>();
    if (scale > 0.0) largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>() / scale);
  }
  return largest;
}

// At the start the alignment's last convolution is zero, which stops gradients behind it.
std::unique_ptr<Model> in_double(const std::string& options, const Camera& camera) {
  auto model = make_network(options, camera);
  model->to(at::kCPU, at::kDouble);
  train(*model);
  const at::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(9);
  for (Parameter& each : model->parameters())
    if (each.name.find("conv_offset.6") != std::string::npos) each.tensor->normal_(0.0, 0.05, generator);
  return model;
}

TEST(SpikeVrt, ABatchInPartsGivesTheSameGradient) {
  const auto model = in_double(kColours + "drop_path_rate = 0.5", kCamera);
  const Clips clips = Clips::random(2, kCamera);
  const auto whole = gradients(*model, clips, kCamera, 2);
  EXPECT_LT(difference(whole, gradients(*model, clips, kCamera, 1)), 1e-12);
  EXPECT_GT(whole.size(), 300u);
}

// At the coarsest level 25 places a clip are rows of products: with as many as 50 or 100, MKL adds up the last of them
// in another order. That last bit is as much as the last bit of the clip, and moves the smallest gradients, 1e-10 of
// the largest, by about 1e-11 of themselves.
TEST(SpikeVrt, ABatchWithSpikesInPartsGivesTheSameGradient) {
  const Camera camera{2, 40, 40, 4};
  const auto model = in_double(kTiny + "drop_path_rate = 0.5\nfusion = \"cross_attention\"", camera);
  const Clips clips = Clips::random(2, camera);
  const auto whole = gradients(*model, clips, camera, 2);
  Clips other = clips;
  other.blur = clips.blur.to(at::kDouble) * (1.0 + std::numeric_limits<double>::epsilon());
  const double last_bit = difference(whole, gradients(*model, other, camera, 2));
  EXPECT_LT(last_bit, 1e-10);
  EXPECT_LT(difference(whole, gradients(*model, clips, camera, 1)), std::max(1e-12, 4.0 * last_bit));
}

TEST(SpikeVrt, RecomputationChangesNothing) {
  const auto model = in_double(kColours + "drop_path_rate = 0.5", kCamera);
  const Clips clips = Clips::random(2, kCamera);
  const auto plain = gradients(*model, clips, kCamera, 2);
  EXPECT_EQ(model->recompute_kinds().size(), 3u);
  for (const std::string& kind : model->recompute_kinds()) {
    model->recompute(std::span(&kind, 1));
    // The worst are tensors whose largest gradient is 1e-9: of theirs, 2.6e-12 was seen.
    EXPECT_LT(difference(plain, gradients(*model, clips, kCamera, 2)), 1e-11) << kind;
  }
}

TEST(SpikeVrt, StochasticDepthIsOfTrainingAlone) {
  const auto model = make_network(kColours + "drop_path_rate = 0.5", kCamera), still = make_network(kStill, kCamera);
  const Clips clips = Clips::random(1, kCamera);
  const at::NoGradGuard no_grad;
  const at::Tensor expected = step(*still, clips, kCamera, HR_TRAIN).outputs[0];
  EXPECT_TRUE(step(*model, clips, kCamera, HR_EVAL).outputs[0].equal(expected));
  EXPECT_TRUE(step(*model, clips, kCamera, HR_EVAL).outputs[0].equal(expected));
  const at::Tensor dropped = step(*model, clips, kCamera).outputs[0];
  EXPECT_FALSE(dropped.allclose(expected));
  EXPECT_TRUE(dropped.equal(step(*model, clips, kCamera).outputs[0])) << "the same keys";
}

TEST(SpikeVrt, FlowAndAlignmentTrainSlowlyAndLate) {
  const auto model = make_network(kColours + "fix_iters = 7\nflow_lr_scale = 0.25", kCamera),
             never = make_network(kColours + "flow_lr_scale = 0.0", kCamera);
  int slow = 0;
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const Parameter& each = model->parameters()[i];
    if (each.kind != HR_PARAMETER) continue;
    const bool flow = each.name.find("spynet") != std::string::npos || each.name.find("deform") != std::string::npos;
    EXPECT_EQ(each.lr_scale, flow ? 0.25 : 1.0) << each.name;
    EXPECT_EQ(each.frozen_until_step, flow ? 7 : 0) << each.name;
    EXPECT_EQ(never->parameters()[i].trains(), !flow) << each.name;
    slow += flow ? 1 : 0;
  }
  EXPECT_EQ(slow, 60 + 7 * 10);
}

TEST(SpikeVrt, StartsAsSpecified) {
  const auto model = make_network(kColours, kCamera, 5), same = make_network(kColours, kCamera, 5),
             other = make_network(kColours, kCamera, 6);
  for (const Parameter& each : model->parameters())
    EXPECT_TRUE(each.tensor->equal(parameter(*same, each.name))) << each.name;
  EXPECT_FALSE(parameter(*model, "conv_first.weight").equal(parameter(*other, "conv_first.weight")));
  EXPECT_EQ(parameter(*model, "stage1.pa_deform.conv_offset.6.weight").abs().max().item<float>(), 0.0F);
  EXPECT_EQ(parameter(*model, "stage1.pa_deform.bias").abs().max().item<float>(), 0.0F);
  const at::Tensor& table = parameter(*model, "stage1.residual_group2.blocks.0.attn.relative_position_bias_table");
  EXPECT_NEAR(table.std().item<double>(), 0.02, 0.005);
}

TEST(SpikeVrt, LossAndMetrics) {
  const auto model = make_network(kStill + "charbonnier_eps = 1e-4", kCamera);
  const Clips clips = Clips::random(2, kCamera);
  const StepResult result = step(*model, clips, kCamera);
  EXPECT_EQ(result.weight.item<double>(), 2.0);
  const at::Tensor error = result.outputs[0] - clips.sharp;
  EXPECT_NEAR((result.loss_sum / result.weight).item<double>(), (error.square() + 1e-4).sqrt().mean().item<double>(),
              1e-6);
  const at::Tensor stored = (result.outputs[0].clamp(0, 1) * 255).round() - (clips.sharp * 255).round();
  const at::Tensor by_frame = stored.square().mean({2, 3, 4});
  EXPECT_NEAR(metric(*model, result, "psnr"), (10.0 * (65025.0 / by_frame).log10()).mean().item<double>(), 1e-4);
  EXPECT_GT(metric(*model, result, "ssim"), -1.0);
  EXPECT_EQ(model->metrics()[0].better, HR_HIGHER);
  EXPECT_EQ(model->metrics()[0].unit, "dB");
  EXPECT_TRUE(result.outputs[1].equal(clips.sharp));
  EXPECT_EQ(result.outputs[2].sizes(), clips.blur.sizes());
}

TEST(SpikeVrt, BytesAreOf255) {
  Camera bytes = kCamera;
  bytes.bytes = true;
  const auto model = make_network(kStill, bytes), of_floats = make_network(kStill, kCamera);
  const Clips clips = Clips::random(1, bytes);
  const Clips floats{clips.blur.to(at::kFloat) / 255, clips.sharp.to(at::kFloat) / 255, {}};
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(step(*model, clips, bytes).outputs[0].allclose(step(*of_floats, floats, kCamera).outputs[0]));
}

// With an adapter that is zero at first, the voxel changes nothing; later it does.
TEST(SpikeVrt, TheAdapterBeginsAtNothing) {
  const Camera camera{2, 40, 40, 5};
  const auto model = make_network(kTiny + "drop_path_rate = 0.0\nfusion = \"adapter\"", camera);
  const Clips clips = Clips::random(1, camera);
  Clips other = clips;
  other.voxel = clips.voxel * 2;
  const at::NoGradGuard no_grad;
  const at::Tensor before = step(*model, clips, camera, HR_EVAL).outputs[0];
  EXPECT_TRUE(step(*model, other, camera, HR_EVAL).outputs[0].equal(before));
  parameter(*model, "voxel_adapter.weight").fill_(0.1);
  EXPECT_FALSE(step(*model, other, camera, HR_EVAL).outputs[0].allclose(before));
}

TEST(SpikeVrt, EvaluationTakesAnySize) {
  const auto model = make_network(kStill, kCamera);
  const Camera odd{3, 35, 41};
  const Clips clips = Clips::random(1, odd);
  const at::NoGradGuard no_grad;
  EXPECT_EQ(step(*model, clips, odd, HR_EVAL).outputs[0].sizes(), clips.blur.sizes());
  EXPECT_THROW(step(*model, clips, odd, HR_TRAIN), Error);
}

TEST(SpikeVrt, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(refusal(kColours, {2, 36, 40}), HasSubstr("frames of 36 x 40 pixels: both must be multiples of 8"));
  EXPECT_THAT(refusal(kColours, {2, 32, 40}), HasSubstr("32 x 40 pixels are too small"));
  EXPECT_THAT(refusal(kColours, {1, 40, 40}), HasSubstr("clips of 1 frames: with pa_frames = 2 at least 2 are needed"));
  EXPECT_THAT(refusal(kColours + "pa_frames = 3"), HasSubstr("pa_frames is 3: 2, 4 or 6"));
  EXPECT_THAT(refusal(kTiny), HasSubstr("model.options.fusion is \"cross_attention\", which needs the field 'voxel'"));
  EXPECT_THAT(refusal(kTiny + "voxel_bins = 32", {2, 40, 40, 16}),
              HasSubstr("the field 'voxel' has 16 bins, but model.options.voxel_bins is 32"));
  EXPECT_THAT(refusal("fusion = \"none\"\ndepths = [2, 2]"), HasSubstr("8 or more in all; they have 2, 11 and 11"));
  EXPECT_THAT(refusal(kColours + "tile = [4, 30]"), HasSubstr("tiles of 30 pixels"));
  EXPECT_THAT(refusal(kColours + "tile = [1, 40]\ntile_overlap = [0, 20]"),
              HasSubstr("tiles of 1 frames; with pa_frames = 2 at least 2 are needed"));
  EXPECT_THAT(refusal(kColours + "tile = [2, 40]"), HasSubstr("must be less than tile = [2, 40]"));
}

TEST(SpikeVrt, WorksInMixedPrecision) {
  for (const Camera& camera : {Camera{2, 40, 48}, Camera{2, 40, 40, 4}}) {
    const auto model = make_network(
        kTiny + "drop_path_rate = 0.5\nfusion = " + (camera.bins > 0 ? "\"cross_attention\"" : "\"none\""), camera);
    const Clips clips = Clips::random(2, camera);
    const auto run = [&](Model& under_test) { return step(under_test, clips, camera); };
    expect_mixed_precision_to_work(*model, run);
    model->recompute(model->recompute_kinds());
    expect_mixed_precision_to_work(*model, run);
  }
}

}  // namespace
}  // namespace headroom
