#include "infer/inference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../record/temporary_folder.hpp"
#include "plugins/host.hpp"
#include "trained_model.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

Library plugin(const std::string& name) {
  set_host_torch_tag(host_torch_tag());
  return Library::load(std::string(HEADROOM_TEST_PLUGIN_DIR) + "/" + name + ".so");
}

Inference inference_of(const TrainedModel& trained) { return {trained, plugin("predicting_model"), at::kCPU}; }

std::vector<at::Tensor> x_alone(const at::Tensor& x) { return {x, at::Tensor()}; }

TEST(Inference, TakesAndGivesWhatWasMeasured) {
  Inference inference = inference_of(predicting());
  const at::Tensor x = at::arange(24, at::kFloat).view({2, 4, 3});
  const auto outputs = inference.run(x_alone(x));
  ASSERT_EQ(outputs.size(), 2u);
  ASSERT_EQ(outputs[0].sizes(), at::IntArrayRef({2, 4, 2}));
  EXPECT_EQ(outputs[0].scalar_type(), at::kFloat);
  EXPECT_FALSE(outputs[1].defined()) << "the target is not known";
  for (int64_t sample = 0; sample < 2; ++sample) {
    for (int64_t step = 0; step < 4; ++step) {
      std::vector<double> measured;
      for (int64_t c = 0; c < 3; ++c) measured.push_back(x[sample][step][c].item<double>());
      const std::vector<double> expected = predicted(measured);
      for (int64_t c = 0; c < 2; ++c)
        EXPECT_NEAR(outputs[0][sample][step][c].item<double>(), expected[static_cast<size_t>(c)], 1e-4);
    }
  }
}

TEST(Inference, SaysWhatItTakesAndGives) {
  const Inference inference = inference_of(predicting());
  EXPECT_EQ(inference.target(), 1u);
  EXPECT_EQ(inference.inputs()[0].unit, "V") << "measured, though the model sees it without a unit";
  EXPECT_FALSE(inference.inputs()[0].normalize);
  EXPECT_EQ(inference.inputs()[1].channels[1].unit, "mm");
  EXPECT_EQ(inference.inputs()[1].channels[1].std, 1.0) << "what a caller gives is not standardised";
  ASSERT_EQ(inference.outputs().size(), 2u);
  const Inference::Output& prediction = inference.outputs()[0];
  EXPECT_TRUE(prediction.given);
  EXPECT_EQ(prediction.field, 1u);
  EXPECT_EQ(prediction.shape, (std::vector<int64_t>{4, 2}));
  EXPECT_FALSE(inference.outputs()[1].given);
}

TEST(Inference, WhatDoesNotSuitIsSaidInASentence) {
  Inference inference = inference_of(predicting());
  EXPECT_THAT(sentence_of([&] {
                inference.run(x_alone(at::zeros({2, 4, 3}, at::kDouble)));
              }),
              HasSubstr("input 'x' is float64 [2, 4, 3]; it must be float32 [samples, then [4, 3]]"));
  EXPECT_THAT(sentence_of([&] {
                inference.run(x_alone(at::zeros({4, 3})));
              }),
              HasSubstr("input 'x' is float32 [4, 3]"));
  EXPECT_THAT(sentence_of([&] {
                inference.run(x_alone(at::zeros({2, 4, 1})));
              }),
              HasSubstr("input 'x' is float32 [2, 4, 1]; it must be of 3 channels along axis 2"))
      << "and not spread over all of them";
  EXPECT_NO_THROW(inference.run(x_alone(at::zeros({2, 9, 3})))) << "a model that predicts takes other extents";
  EXPECT_THAT(sentence_of([&] { inference.run(x_alone(at::zeros({0, 4, 3}))); }), HasSubstr("at least one"));
  EXPECT_THAT(sentence_of([&] { inference.run(std::vector<at::Tensor>(2)); }), HasSubstr("no input was given"));
  EXPECT_THAT(sentence_of([&] {
                inference.run(std::vector{at::Tensor(), at::zeros({2, 4, 2})});
              }),
              HasSubstr("[infer] input 'x' was not given, and the model fails: [predicting_model]"));
  EXPECT_THAT(sentence_of([&] { inference.run(std::vector<at::Tensor>(1)); }), HasSubstr("the model has 2"));
  EXPECT_NO_THROW(inference.run(x_alone(at::zeros({1, 4, 3})))) << "usable after errors";
}

// The caller's memory is gone when it reads what the model gives.
TEST(Inference, OutputsNeverShareMemoryWithInputs) {
  TrainedModel trained = predicting("echoes");
  trained.normalizer = nlohmann::json::array();
  trained.fields[0]["normalize"] = false;
  trained.fields[1]["channels"] = nlohmann::json::array();
  Inference inference = inference_of(trained);
  const at::Tensor x = at::arange(24, at::kFloat).view({2, 4, 3});
  const auto outputs = inference.run(x_alone(x));
  EXPECT_TRUE(outputs[0].equal(x));
  EXPECT_FALSE(outputs[0].is_alias_of(x));
}

TEST(Inference, WeightsOfAnotherModelAreRefused) {
  TrainedModel trained = predicting();
  trained.weights[1].name = "head.b";
  EXPECT_THAT(sentence_of([&] { inference_of(trained); }), HasSubstr("a-test: 'head.bias' is missing"));
  trained = predicting();
  trained.weights[1].shape = {1, 2};
  EXPECT_THAT(sentence_of([&] { inference_of(trained); }),
              HasSubstr("'head.bias' has shape [1, 2], the model needs [2]"));
  trained = predicting();
  trained.fields = nullptr;
  EXPECT_THAT(sentence_of([&] { inference_of(trained); }), HasSubstr("was saved by an earlier build"));
  trained = predicting("none", "predicting_model");
  trained.normalizer[0]["mean"] = {1, 2};
  trained.normalizer[0]["std"] = {1, 2};
  EXPECT_THAT(sentence_of([&] { inference_of(trained); }),
              HasSubstr("field 'x' has 3 channels; the normaliser was measured on 2"));
}

}  // namespace
}  // namespace headroom
