// libheadroom_infer as a program meets it: through infer.h and infer.hpp, without LibTorch.
#include "headroom/infer.hpp"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "../record/temporary_folder.hpp"
#include "trained_model.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

class InferLibrary : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    settings_.struct_size = sizeof settings_;
    settings_.plugin_dirs = dirs_;
    settings_.threads = 1;
    file_ = (folder_ / "model.safetensors").string();
    predicting().write(file_);
  }
  hr_status open(const std::string& path, const hr_infer_settings* settings) {
    hr_infer* model = nullptr;
    error_ = {};
    error_.struct_size = sizeof error_;
    const hr_status status = hr_infer_open(path.c_str(), settings, &model, &error_);
    EXPECT_EQ(model == nullptr, status != HR_OK);
    hr_infer_close(model);
    return status;
  }

  const char* dirs_[2] = {HEADROOM_TEST_PLUGIN_DIR, nullptr};
  hr_infer_settings settings_{};
  std::string file_;
  hr_error error_{};
};

std::vector<float> values(size_t count) {
  std::vector<float> all;
  for (size_t i = 0; i < count; ++i) all.push_back(static_cast<float>(i) / 4);
  return all;
}

void expect_predictions(InferenceModel& model, int64_t samples) {
  const std::vector<float> x = values(static_cast<size_t>(samples) * 12);
  model.set("x", std::span<const float>(x), samples);
  model.run();
  const std::span<const float> given = model.output<float>("prediction");
  ASSERT_EQ(given.size(), static_cast<size_t>(samples) * 8);
  for (size_t row = 0; row < given.size() / 2; ++row) {
    const std::vector<double> expected = predicted({x[3 * row], x[3 * row + 1], x[3 * row + 2]});
    EXPECT_NEAR(given[2 * row], expected[0], 1e-4);
    EXPECT_NEAR(given[2 * row + 1], expected[1], 1e-4);
  }
  EXPECT_TRUE(model.output<float>("target").empty()) << "it needs what is to be predicted";
}

TEST_F(InferLibrary, MeasuredInMeasuredOut) {
  InferenceModel model(file_, &settings_);
  for (const int64_t samples : {1, 3, 2}) expect_predictions(model, samples);
  InferenceModel moved = std::move(model);
  expect_predictions(moved, 2);
}

TEST_F(InferLibrary, SaysItsInputsAndOutputs) {
  const InferenceModel model(file_, &settings_);
  ASSERT_EQ(model.inputs(), 2u);
  EXPECT_STREQ(model.input(0).name, "x");
  EXPECT_STREQ(model.input(0).unit, "V");
  EXPECT_EQ(model.input(0).ndim, 2);
  EXPECT_EQ(model.input(0).shape[1], 3);
  EXPECT_TRUE(model.needs(0));
  EXPECT_FALSE(model.needs(1)) << "y is predicted";
  ASSERT_EQ(model.outputs(), 2u);
  const hr_infer_output& prediction = model.output(0);
  EXPECT_STREQ(prediction.name, "prediction");
  ASSERT_NE(prediction.field, nullptr);
  EXPECT_STREQ(prediction.field->name, "y");
  EXPECT_STREQ(prediction.field->channels[1].unit, "mm");
  EXPECT_EQ(prediction.shape[0], 4);
  EXPECT_EQ(prediction.shape[1], 2);
  EXPECT_THROW((void)model.input(2), InferenceError);
}

TEST_F(InferLibrary, ErrorsAreASentenceAndAStatus) {
  EXPECT_EQ(open((folder_ / "nowhere").string(), &settings_), HR_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("there is no such run's folder"));
  EXPECT_EQ(open(folder_.string(), &settings_), HR_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("is not a run's folder"));
  hr_infer_settings nowhere = settings_;
  nowhere.device = "abacus";
  EXPECT_EQ(open(file_, &nowhere), HR_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("the device 'abacus' is not known"));
  const hr_infer_settings unsized{};
  EXPECT_EQ(open(file_, &unsized), HR_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("it must be sizeof(hr_infer_settings)"));
  predicting("none", "no_such_model").write(folder_ / "other.safetensors");
  EXPECT_EQ(open((folder_ / "other.safetensors").string(), &settings_), HR_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("no plugin 'no_such_model'"));

  InferenceModel model(file_, &settings_);
  EXPECT_THROW(model.run(), InferenceError) << "no input was given";
  const std::vector<float> x = values(12);
  EXPECT_THROW(model.set("x", std::span<const float>(x), 2), InferenceError);
  EXPECT_THROW(model.set("z", std::span<const float>(x), 1), InferenceError);
  const std::vector<double> wide(12);
  EXPECT_THROW(model.set("x", std::span<const double>(wide), 1), InferenceError);
  expect_predictions(model, 1);
}

std::string sentence_of_inference(const std::function<void()>& action) {
  try {
    action();
  } catch (const InferenceError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(InferLibrary, AnInputThatIsRefusedStaysWhatItWas) {
  InferenceModel model(file_, &settings_);
  EXPECT_EQ(sentence_of_inference([&] { (void)model.result(0); }), "there is no result: call run() before");
  const std::vector<float> x = values(12);
  model.set("x", std::span<const float>(x), 1);
  EXPECT_THROW(model.set("x", std::span<const float>(x), 1000), InferenceError);
  model.run();
  EXPECT_EQ(model.output<float>("prediction").size(), 8u) << "of one sample: 999 more were read behind it";
}

TEST_F(InferLibrary, AnArrayThatIsNoneIsTheCallersError) {
  hr_infer* model = nullptr;
  ASSERT_EQ(hr_infer_open(file_.c_str(), &settings_, &model, nullptr), HR_OK);
  std::vector<float> x = values(12);
  int64_t shape[] = {1, 4, 3}, negative[] = {1, -4, 3}, strides[] = {12, -3, 1};
  DLTensor inputs[2] = {};
  inputs[0].data = x.data();
  inputs[0].device.device_type = kDLCPU;
  inputs[0].ndim = 3;
  inputs[0].shape = shape;
  const DLTensor* outputs = nullptr;
  for (const DLDataType dtype : {DLDataType{kDLFloat, 7, 1}, DLDataType{kDLFloat, 32, 4}, DLDataType{99, 32, 1}}) {
    inputs[0].dtype = dtype;
    EXPECT_EQ(hr_infer_run(model, inputs, &outputs, nullptr), HR_INVALID_ARGUMENT) << int{dtype.code};
  }
  inputs[0].dtype = {kDLFloat, 32, 1};
  inputs[0].shape = negative;
  EXPECT_EQ(hr_infer_run(model, inputs, &outputs, nullptr), HR_INVALID_ARGUMENT);
  inputs[0].shape = shape;
  inputs[0].strides = strides;
  EXPECT_EQ(hr_infer_run(model, inputs, &outputs, &error_), HR_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("input 'x' is no array that can be read"));
  hr_infer_close(model);
}

// An array of [samples][channels][steps], as its strides say.
TEST_F(InferLibrary, StridesAreFollowed) {
  hr_infer* model = nullptr;
  ASSERT_EQ(hr_infer_open(file_.c_str(), &settings_, &model, nullptr), HR_OK);
  std::vector<float> turned(12);
  for (size_t step = 0; step < 4; ++step)
    for (size_t c = 0; c < 3; ++c) turned[c * 4 + step] = values(12)[step * 3 + c];
  int64_t shape[] = {1, 4, 3}, strides[] = {12, 1, 4};
  DLTensor inputs[2] = {};
  inputs[0].data = turned.data();
  inputs[0].device.device_type = kDLCPU;
  inputs[0].dtype = {kDLFloat, 32, 1};
  inputs[0].ndim = 3;
  inputs[0].shape = shape;
  inputs[0].strides = strides;
  const DLTensor* outputs = nullptr;
  ASSERT_EQ(hr_infer_run(model, inputs, &outputs, nullptr), HR_OK);
  const auto* given = static_cast<const float*>(outputs[0].data);
  EXPECT_NEAR(given[2 * 3], predicted({9 / 4.0, 10 / 4.0, 11 / 4.0})[0], 1e-4);
  EXPECT_EQ(outputs[1].data, nullptr);
  hr_infer_close(model);
}

TEST_F(InferLibrary, ModelsOfTheirOwnRunInThreadsOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      InferenceModel model(file_, &settings_);
      for (int64_t samples = 1; samples < 5; ++samples) expect_predictions(model, samples);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace headroom
