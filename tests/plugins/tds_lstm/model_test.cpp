// What golden files cannot show: shapes, counts, masks, and the sentences for what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../models/mixed_precision.hpp"
#include "error.hpp"
#include "plugin_under_test.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

const std::string full_encoder = R"(
conv_blocks = [{out_channels = 256, kernel_size = 11, stride = 5}, {out_channels = 256, kernel_size = 5, stride = 2}]
tds_stages = [
  {in_conv_kernel_width = 17, in_conv_stride = 4, channels = 16, feature_width = 16, kernel_width = 9},
  {in_conv_kernel_width = 9, in_conv_stride = 2, channels = 16, feature_width = 16, kernel_width = 5, out_channels = 64}]
)";

std::string refusal(const std::string& options, const EmgRecording& recording = {}) {
  try {
    make_model(options, recording);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::bad_input);
    return error.what();
  }
  return "accepted";
}

void zero_columns(at::Tensor& weight, int64_t first) {
  const torch::NoGradGuard no_grad;
  weight.narrow(1, first, weight.size(1) - first).zero_();
}

void copy_parameters(Model& from, Model& to) {
  const torch::NoGradGuard no_grad;
  for (Parameter& each : to.parameters()) each.tensor->copy_(parameter(from, each.name));
}

TEST(TdsLstm, DefaultsAreThePresetDefault) {
  const auto model = make_model("");
  EXPECT_EQ(parameter_count(*model), 283092);
  EXPECT_EQ(parameter(*model, "network.layers.1.layers.tds_block.tds_conv_blocks.2.conv2d.weight").sizes(),
            (std::vector<int64_t>{8, 8, 1, 11}));
  const StepResult result = step(*model, EmgBatch::random(2, {}));
  ASSERT_EQ(result.outputs.size(), 3u);
  EXPECT_EQ(result.outputs[0].sizes(), (std::vector<int64_t>{2, 328, 20}));
  EXPECT_EQ(result.outputs[1].sizes(), (std::vector<int64_t>{2, 328, 20}));
  EXPECT_EQ(result.outputs[2].sizes(), (std::vector<int64_t>{2, 328}));
}

TEST(TdsLstm, ParameterCountsOfTheReference) {
  const EmgRecording window{1811};
  const std::string lstm512 = full_encoder + "decoder_hidden_size = 512\n", mlp = full_encoder + "decoder = \"mlp\"\n";
  EXPECT_EQ(parameter_count(*make_model(lstm512, window)), 5970068);
  EXPECT_EQ(parameter_count(*make_model(lstm512 + "pose_module = \"vemg2pose\"", window)), 5980328);
  EXPECT_EQ(parameter_count(*make_model(mlp, window)), 2952340);
  EXPECT_EQ(parameter_count(*make_model(full_encoder, window)), 2878100);
  EXPECT_EQ(parameter_count(*make_model("decoder_hidden_size = 64\ndecoder_num_layers = 1")), 78548);
}

TEST(TdsLstm, ParametersStandInTheReferencesOrder) {
  const auto model = make_model(full_encoder + "decoder_hidden_size = 64\n", EmgRecording{1811});
  EXPECT_EQ(model->parameters().front().name, "network.layers.0.conv.0.weight");
  EXPECT_EQ(model->parameters().back().name, "decoder.mlp_out.1.bias");
  std::size_t linear = 0, layers = 0;
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    if (model->parameters()[i].name == "network.layers.3.linear_layer.weight") linear = i;
    if (model->parameters()[i].name == "network.layers.3.layers.conv1dblock.conv.0.weight") layers = i;
  }
  EXPECT_LT(linear, layers);
}

TEST(TdsLstm, ParametersComeFromTheSeedAlone) {
  torch::manual_seed(3);
  const auto first = make_model(tiny, tiny_recording, 11);
  const at::Tensor after = torch::rand({4});
  torch::manual_seed(3);
  EXPECT_TRUE(torch::rand({4}).equal(after)) << "making a model must leave the host's generator alone";
  torch::manual_seed(4);
  const auto second = make_model(tiny, tiny_recording, 11), other = make_model(tiny, tiny_recording, 12);
  for (const Parameter& each : first->parameters())
    EXPECT_TRUE(each.tensor->equal(parameter(*second, each.name))) << each.name;
  EXPECT_FALSE(parameter(*first, "decoder.lstm.weight_ih_l0").equal(parameter(*other, "decoder.lstm.weight_ih_l0")));
  const at::Tensor& hidden = parameter(*first, "decoder.lstm.weight_hh_l0");
  EXPECT_LE(hidden.abs().max().item<double>(), 1.0 / std::sqrt(6.0));
  EXPECT_GE(hidden.abs().max().item<double>(), 0.8 / std::sqrt(6.0));
}

TEST(TdsLstm, StepsRoundHalfToEven) {
  // 500 outputs at 2000 Hz are 12.5 steps of 50 Hz: with 12, the last output lies beyond the last step's centre.
  const auto model = make_model(tiny + "rollout_freq = 50.0\npredict_vel = true", EmgRecording{512, 8, 5});
  model->to(at::kCPU, at::kDouble);  // interpolating between equal values may round them in float32
  const at::Tensor predicted = step(*model, EmgBatch::random(1, {512, 8, 5}).to(at::kDouble)).outputs[0];
  const at::Tensor slopes = predicted.select(2, 0).diff().diff().abs().squeeze(0);  // knots of the linear interpolation
  const int64_t knots = slopes.gt(1e-6).sum().item<int64_t>();
  // Each of the 12 steps' centres bends the line at one or two second differences; the ends are flat.
  EXPECT_GE(knots, 12);
  EXPECT_LE(knots, 24);
  const auto steepest = [&](int64_t first) {
    return predicted.narrow(1, first, 20).diff(1, 1).abs().max().item<double>();
  };
  EXPECT_LE(steepest(500 - 20), 1e-12 * steepest(500 - 40)) << "500 / 12 / 2 = 20.8 flat samples";
}

TEST(TdsLstm, OtherRatesJointsAndChannels) {
  const EmgRecording recording{400, 8, 5, 125.0};
  const auto model = make_model("", recording);
  const StepResult result = step(*model, EmgBatch::random(3, recording));
  EXPECT_EQ(result.outputs[0].sizes(), (std::vector<int64_t>{3, 228, 5}));
  EXPECT_EQ(result.weight.item<double>(), 3 * 228 * 5);
  EXPECT_EQ(result.metrics.size(0), static_cast<int64_t>(model->metrics().size()));
  for (const MetricInfo& metric : model->metrics())
    EXPECT_NE(metric.name, "mae_thumb") << "five joints are not a hand of twenty";
}

TEST(TdsLstm, DegreesOnlyWhereAnglesAreRadians) {
  const auto has_degrees = [](const Model& model) {
    return std::any_of(model.metrics().begin(), model.metrics().end(),
                       [](const MetricInfo& m) { return m.name == "mae_deg"; });
  };
  EmgRecording recording = tiny_recording;
  EXPECT_TRUE(has_degrees(*make_model(tiny, recording)));
  recording.unit = "deg";
  EXPECT_FALSE(has_degrees(*make_model(tiny, recording)));
}

TEST(TdsLstm, LossIsTheWeightedSumOverWhatCounts) {
  EmgBatch batch = EmgBatch::random(2, tiny_recording);
  batch.valid[0].narrow(0, 30, 10).zero_();
  const auto sums = [&](const std::string& loss) { return step(*make_model(tiny + loss, tiny_recording), batch); };
  const StepResult mae = sums("loss = \"mae\""), both = sums("");
  EXPECT_EQ(mae.weight.item<double>(), (2 * 48 - 10) * 5);
  const at::Tensor error = (mae.outputs[0] - mae.outputs[1]).index({mae.outputs[2].to(at::kBool)});
  EXPECT_NEAR(mae.loss_sum.item<double>(), error.abs().sum().item<double>(), 1e-3);
  EXPECT_NEAR(both.loss_sum.item<double>(), (error.square().sum() + 0.5 * error.abs().sum()).item<double>(), 1e-3);
  const StepResult weighted = sums("loss_weights = {mse = 0.0, mae = 2.0}");
  EXPECT_NEAR(weighted.loss_sum.item<double>(), 2.0 * error.abs().sum().item<double>(), 1e-3);
}

TEST(TdsLstm, AllMaskedBatchHasWeightZeroAndZeroGradients) {
  const auto model = make_model(tiny, tiny_recording);
  EmgBatch batch = EmgBatch::random(2, tiny_recording);
  batch.valid.zero_();
  batch.angles.fill_(NAN);
  const StepResult result = step(*model, batch);
  EXPECT_EQ(result.weight.item<double>(), 0.0);
  EXPECT_EQ(result.loss_sum.item<double>(), 0.0);
  EXPECT_EQ(result.metrics.abs().sum().item<double>(), 0.0);
  result.loss_sum.backward();
  for (const at::Tensor& gradient : gradients(*model)) EXPECT_EQ(gradient.abs().max().item<double>(), 0.0);
}

TEST(TdsLstm, WhatIsMaskedDoesNotMatter) {
  const auto model = make_model(tiny, tiny_recording);
  EmgBatch clean = EmgBatch::random(3, tiny_recording);
  clean.valid[0].narrow(0, 25, 5).zero_();
  clean.valid[1][12] = 0;  // the first predicted sample: the whole sequence is dropped
  EmgBatch dirty{clean.emg, clean.angles.clone(), clean.valid};
  dirty.angles[0].narrow(0, 25, 5).fill_(NAN);
  dirty.angles[1].fill_(NAN);
  const StepResult expected = step(*model, clean);
  expected.loss_sum.backward();
  const std::vector<at::Tensor> wanted = gradients(*model);
  clear_gradients(*model);
  const StepResult result = step(*model, dirty);
  result.loss_sum.backward();
  EXPECT_EQ(result.weight.item<double>(), (2 * 48 - 5) * 5);
  EXPECT_TRUE(result.loss_sum.equal(expected.loss_sum));
  EXPECT_TRUE(result.metrics.equal(expected.metrics));
  const std::vector<at::Tensor> got = gradients(*model);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(wanted[i])) << model->parameters()[i].name;
}

TEST(TdsLstm, MaskAtTheFirstSampleCountsOnlyWhenItIsTheInitialPose) {
  EmgBatch batch = EmgBatch::random(2, tiny_recording);
  batch.valid[1][12] = 0;
  EXPECT_EQ(step(*make_model(tiny, tiny_recording), batch).weight.item<double>(), 48 * 5);
  EXPECT_EQ(step(*make_model(tiny + "provide_initial_pos = false", tiny_recording), batch).weight.item<double>(),
            95 * 5);
}

TEST(TdsLstm, WithoutStateEqualsAStateThatIsNotHeard) {
  const auto with = make_model(tiny + "predict_vel = true", tiny_recording);
  const auto without = make_model(tiny + "predict_vel = true\nstate_condition = false", tiny_recording);
  zero_columns(parameter(*with, "decoder.lstm.weight_ih_l0"), 8);
  {
    const torch::NoGradGuard no_grad;
    for (Parameter& each : without->parameters()) {
      const at::Tensor& source = parameter(*with, each.name);
      each.tensor->copy_(source.dim() == 2 ? source.narrow(1, 0, each.tensor->size(1)) : source);
    }
  }
  const EmgBatch batch = EmgBatch::random(2, tiny_recording);
  EXPECT_LE(relative_error(step(*without, batch).outputs[0], step(*with, batch).outputs[0]), 1e-6);
}

TEST(TdsLstm, PositionsThenVelocities) {
  // 20 samples of 125 Hz are 8 steps of 50 Hz.
  const auto both = [](int steps) {
    return make_model(tiny + "pose_module = \"vemg2pose\"\nnum_position_steps = " + std::to_string(steps),
                      tiny_recording);
  };
  const EmgBatch batch = EmgBatch::random(2, tiny_recording);
  const auto half = [&](Model& model, int64_t first) {
    const auto state = make_model(tiny + (first == 0 ? "" : "predict_vel = true"), tiny_recording);
    const torch::NoGradGuard no_grad;
    for (Parameter& each : state->parameters()) {
      const at::Tensor& source = parameter(model, each.name);
      each.tensor->copy_(each.name.starts_with("decoder.mlp_out") ? source.narrow(0, first, 5) : source);
    }
    return step(*state, batch).outputs[0];
  };
  const auto positions = both(10000), velocities = both(0), mixed = both(20);
  EXPECT_LE(relative_error(step(*positions, batch).outputs[0], half(*positions, 0)), 1e-6);
  EXPECT_LE(relative_error(step(*velocities, batch).outputs[0], half(*velocities, 5)), 1e-6);
  // Equal until the 8th of 19 steps, different after.
  const at::Tensor start = step(*mixed, batch).outputs[0], same = half(*mixed, 0);
  EXPECT_LE(relative_error(start.narrow(1, 0, 18), same.narrow(1, 0, 18)), 1e-6);
  EXPECT_GE(relative_error(start.narrow(1, 24, 24), same.narrow(1, 24, 24)), 1e-3);
}

TEST(TdsLstm, EncoderAlone) {
  const std::string encoder = R"(
    pose_module = "pose"
    tds_stages = [{in_conv_stride = 1, num_blocks = 1, channels = 4, feature_width = 2, kernel_width = 5, out_channels = 5}]
  )";
  const auto positions = make_model(encoder, tiny_recording),
             velocities = make_model(encoder + "predict_vel = true", tiny_recording);
  copy_parameters(*positions, *velocities);
  const EmgBatch batch = EmgBatch::random(2, tiny_recording);
  const at::Tensor features = step(*positions, batch).outputs[0];
  EXPECT_EQ(features.sizes(), (std::vector<int64_t>{2, 52, 5}));
  const at::Tensor expected = batch.angles.narrow(1, 8, 1) + features.cumsum(1);
  EXPECT_LE(relative_error(step(*velocities, batch).outputs[0], expected), 1e-6);
}

TEST(TdsLstm, MetricsOfMotion) {
  const auto model = make_model(tiny, tiny_recording);
  EmgBatch batch = EmgBatch::random(1, tiny_recording);
  batch.valid[0][30] = 0;
  const StepResult result = step(*model, batch);
  const at::Tensor predicted = result.outputs[0], target = result.outputs[1];
  at::Tensor kept = torch::ones({47}, torch::kBool);
  kept[17] = kept[18] = false;  // both differences that touch the sample 30 - 12
  const auto mean = [&](const at::Tensor& values) {
    return values.diff(1, 1).abs()[0].index({kept}).mean().item<double>() * 125.0;
  };
  const auto metric = [&](const std::string& name) {
    for (std::size_t i = 0; i < model->metrics().size(); ++i) {
      const at::Tensor row = result.metrics[static_cast<int64_t>(i)];
      if (model->metrics()[i].name == name) return (row[0] / row[1]).item<double>();
    }
    return -1.0;
  };
  EXPECT_NEAR(metric("vel"), mean(predicted), 1e-4 * mean(predicted));
  EXPECT_NEAR(metric("vel_error"), mean(predicted - target), 1e-4 * mean(predicted - target));
  EXPECT_NEAR(metric("mae_deg"), metric("mae") * 57.29578, 1e-4);
}

TEST(TdsLstm, ShortWindowsAreRefusedWithTheLengthTheyNeed) {
  EXPECT_THAT(refusal("", EmgRecording{150}),
              HasSubstr("a window of 150 samples is too short: this encoder takes 172 samples of left context "
                        "and needs at least 21 more to predict (one roll-out step of 50 Hz at a sample rate "
                        "of 2000 Hz); set data.options.window_size to 193 or more"));
  EXPECT_THAT(refusal("", EmgRecording{192}), HasSubstr("window_size to 193 or more"));
  EXPECT_NO_THROW(make_model("", EmgRecording{193}));
  EXPECT_THAT(refusal(full_encoder), HasSubstr("window_size to 1811 or more"));
  EXPECT_THAT(refusal("pose_module = \"pose\"", EmgRecording{172}),
              HasSubstr("at least 1 more to predict; set data.options.window_size to 173"));
}

TEST(TdsLstm, OptionsThatDoNotFitAreRefused) {
  const auto stage = [](const std::string& keys) { return "tds_stages = [{feature_width = 4, " + keys + "}]"; };
  EXPECT_THAT(refusal(stage("kernel_width = 4")),
              HasSubstr("tds_stages[0].kernel_width is 4: TDS convolutions need an odd kernel"));
  EXPECT_THAT(refusal(stage("kernel_width = 5, in_channels = 9")),
              HasSubstr("tds_stages[0].in_channels is 9, but what comes before it has 16 channels"));
  EXPECT_THAT(refusal(stage("kernel_width = 5, in_conv_kernel_width = 0")),
              HasSubstr("must be its 16 input channels, not 32"));
  EXPECT_THAT(refusal("tds_stages = []"), HasSubstr("are both empty"));
  EXPECT_THAT(refusal("pose_module = \"pose\""), HasSubstr("must be 20 wide, not 64"));
  EXPECT_THAT(refusal("loss = \"mae\"\nloss_weights = {mae = 2.0}"),
              HasSubstr("loss_weights belongs to loss = \"mse_mae\""));
  EXPECT_THAT(refusal("loss_weights = {mse = 0.0, mae = 0.0}"), HasSubstr("at least one term must count"));
  EXPECT_THAT(refusal("decoder_hidden_size = 0"), HasSubstr("decoder_hidden_size"));
  EXPECT_THAT(refusal("conv_blocks = [{out_channels = 4, kernel_size = 3, norm_type = \"batch\"}]"),
              HasSubstr("norm_type"));
  EXPECT_THAT(refusal("", EmgRecording{500, 16, 20, 0.0}), HasSubstr("has no sample rate"));
}

TEST(TdsLstm, WorksInMixedPrecision) {
  for (const char* options :
       {"", "pose_module = \"vemg2pose\"", "state_condition = false", "decoder = \"mlp\"", "predict_vel = true"}) {
    SCOPED_TRACE(options);
    const auto model = make_model(options);
    const EmgBatch batch = EmgBatch::random(2, {});
    expect_mixed_precision_to_work(*model, [&](Model& under_test) { return step(under_test, batch); });
  }
}

}  // namespace
}  // namespace headroom
