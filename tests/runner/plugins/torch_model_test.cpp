#include "plugins/torch_model.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "error.hpp"
#include "headroom/random.h"
#include "memory/tensor_allocator.hpp"
#include "plugins/conformance.hpp"
#include "plugins/describe.hpp"
#include "plugins/host.hpp"
#include "plugins/model_files.hpp"

namespace headroom {
namespace {

Library load(const std::string& path) {
  set_host_torch_tag(host_torch_tag());
  return Library::load(path);
}

Library odd() { return load(HEADROOM_TEST_PLUGIN_DIR "/odd_model.so"); }
Library linear() { return load(HEADROOM_EXAMPLE_DIR "/linear_model.so"); }
Library toy() { return load(HEADROOM_EXAMPLE_DIR "/toy_source.so"); }

OptionValues options(const OptionTable& table, const std::string& toml) {
  const toml::table values = toml::parse(toml);
  return check_options(table, &values, "options", "a test");
}

std::vector<Field> fields_x() {
  return {{.name = "x", .unit = "", .dtype = {kDLFloat, 32, 1}, .shape = {3}, .axes = {""}, .channels = {}}};
}

std::unique_ptr<Model> odd_model(const std::string& how = "well", uint64_t seed = 1) {
  const Library library = odd();
  return std::make_unique<Model>(
      library, options(to_option_table(library.model_torch()->options), "how = \"" + how + "\""), fields_x(), seed);
}

const std::vector<uint64_t> kKeys = {1, 2};

StepResult step(Model& model, bool want_outputs = true) {
  const std::vector<at::Tensor> batch = {at::ones({2, 3})};
  return model.step(HR_TRAIN, 0, kKeys, batch, want_outputs);
}

TEST(TorchModel, DescribesItself) {
  const auto model = odd_model();
  ASSERT_EQ(model->parameters().size(), 3u);
  const Parameter& weight = model->parameters()[0];
  EXPECT_EQ(weight.name, "weight");
  EXPECT_EQ(weight.kind, HR_PARAMETER);
  EXPECT_EQ(weight.group, "all");
  EXPECT_EQ(weight.lr_scale, 0.5);
  EXPECT_EQ(weight.weight_decay_scale, 1.0);
  EXPECT_EQ(weight.frozen_until_step, 3);
  EXPECT_EQ(weight.lr, 0.0);
  EXPECT_EQ(odd_model("own_lr")->parameters()[0].lr, 1e-5);
  EXPECT_EQ(model->parameters()[1].kind, HR_BUFFER);
  EXPECT_EQ(model->parameters()[2].kind, HR_DERIVED);
  EXPECT_TRUE(model->parameters()[2].inert);
  EXPECT_EQ(model->outputs()[1].name, "truth");
  EXPECT_EQ(model->outputs()[1].role, HR_TARGET);
  EXPECT_EQ(model->metrics()[0].unit, "m");
  EXPECT_EQ(model->metrics()[1].better, HR_HIGHER);
  EXPECT_EQ(model->capabilities(), HR_MODEL_FP64);
}

TEST(TorchModel, TheSeedDecides) {
  at::Tensor before = torch::rand({4});
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  const auto a = odd_model("well", 1), b = odd_model("well", 1), c = odd_model("well", 2);
  EXPECT_TRUE(at::equal(*a->parameters()[0].tensor, *b->parameters()[0].tensor));
  EXPECT_FALSE(at::equal(*a->parameters()[0].tensor, *c->parameters()[0].tensor));
  EXPECT_TRUE(at::equal(state, at::detail::getDefaultCPUGenerator().get_state()));  // the host's generator is its own
}

TEST(TorchModel, AStep) {
  const auto model = odd_model();
  const StepResult result = step(*model);
  EXPECT_NEAR(result.loss_sum.item<double>(), 2.0 * model->parameters()[0].tensor->abs().sum().item<double>(), 1e-5);
  EXPECT_TRUE(result.loss_sum.requires_grad());
  EXPECT_EQ(result.weight.item<double>(), 2.0);
  ASSERT_EQ(result.outputs.size(), 2u);
  EXPECT_FALSE(result.outputs[0].requires_grad());
  ASSERT_EQ(result.metrics.sizes(), at::IntArrayRef({2, 2}));
  EXPECT_EQ(result.metrics[0][1].item<double>(), 2.0);
  EXPECT_EQ(result.metrics[1][0].item<double>(), 1.0);
  result.loss_sum.backward();
  EXPECT_TRUE(model->parameters()[0].tensor->grad().defined());
  EXPECT_TRUE(step(*model, false).outputs.empty());
}

TEST(TorchModel, OneModelsOwnCapabilitiesWin) {
  EXPECT_EQ(odd_model("couples")->capabilities(), HR_MODEL_FP64 | HR_COUPLES_SAMPLES);
  EXPECT_EQ(odd_model("well")->capabilities(), HR_MODEL_FP64);
}

TEST(TorchModel, ItsOwnBackwardIsCalledAndItsErrorsAreTold) {
  const auto model = odd_model();
  model->backward(step(*model).loss_sum);
  EXPECT_TRUE(model->parameters()[0].tensor->grad().defined());
  const auto hungry = odd_model("backward_oom");
  EXPECT_THROW(hungry->backward(step(*hungry).loss_sum), c10::OutOfMemoryError);
  const auto failing = odd_model("backward_fails");
  try {
    failing->backward(step(*failing).loss_sum);
    FAIL() << "nothing was thrown";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::plugin);
    EXPECT_NE(std::string(problem.what()).find("it went wrong on the way back"), std::string::npos);
  }
}

TEST(TorchModel, AStepThatSwallowsARefusalHasRunOutOfMemory) {
  install_tensor_allocator();
  const auto model = odd_model("swallows");
  EXPECT_NO_THROW(step(*model));
  const std::vector<at::Tensor> batch = {at::ones({2, 3})};
  fail_tensor_allocation(0);
  try {
    model->step(HR_TRAIN, 0, kKeys, batch);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const c10::OutOfMemoryError& problem) {
    EXPECT_NE(std::string(problem.what()).find("went on without it"), std::string::npos) << problem.what();
  }
  fail_tensor_allocation(-1);
  EXPECT_NO_THROW(step(*model));
}

TEST(TorchModel, TheContentOfItsFilesIsDigested) {
  const std::string file = testing::TempDir() + "odd_model_file";
  const auto digests = [&] {
    const Library library = odd();
    const OptionTable table = to_option_table(library.model_torch()->options);
    return model_file_digests(library, options(table, "how = \"" + file + "\""), *Session::of_process());
  };
  EXPECT_THROW(digests(), Error);
  std::filesystem::create_directory(file);  // opens, and cannot be read
  EXPECT_THROW(digests(), Error);
  std::filesystem::remove(file);
  std::ofstream(file) << "one";
  const auto one = digests();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.begin()->first, "its file");
  std::ofstream(file) << "two";
  EXPECT_NE(digests(), one);
  std::filesystem::resize_file(file, (1 << 20) + 1);
  const auto large = digests();
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_NE(digests(), large);
  std::filesystem::remove(file);
  EXPECT_TRUE(model_file_digests(linear(), options(to_option_table(linear().model_torch()->options), ""),
                                 *Session::of_process())
                  .empty());
}

// float32 counts to 2^24 only; a micro-batch may have more elements.
TEST(TorchModel, WeightsAreExactBesideALossInFloat32) {
  for (const char* how : {"many_as_number", "many_as_int64"}) {
    const StepResult result = step(*odd_model(how));
    EXPECT_EQ(result.loss_sum.scalar_type(), at::kFloat);
    EXPECT_EQ(result.weight.item<double>(), 16777217.0) << how;
  }
  EXPECT_EQ(step(*odd_model("many_as_int64")).metrics[1][1].item<double>(), 16777217.0);
}

TEST(TorchModel, MovesInPlace) {
  const auto model = odd_model();
  model->to(at::kCPU, at::kDouble);
  EXPECT_EQ(model->parameters()[0].tensor->scalar_type(), at::kDouble);
  EXPECT_EQ(model->parameters()[1].tensor->scalar_type(), at::kLong);
  const std::vector<at::Tensor> batch = {at::ones({2, 3}, at::kDouble)};
  const StepResult result = model->step(HR_TRAIN, 0, kKeys, batch);
  EXPECT_EQ(result.loss_sum.scalar_type(), at::kDouble);  // the model's own tensors moved
  result.loss_sum.backward();
  EXPECT_EQ(model->parameters()[0].tensor->grad().scalar_type(), at::kDouble);
}

TEST(TorchModel, AutocastIsOnInStepsAloneAndOutputsAreWide) {
  const auto model = odd_model();
  const at::Tensor exact = step(*model).outputs[0];
  model->autocast(at::kBFloat16);
  const StepResult result = step(*model);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::equal(result.outputs[0], exact));  // products by element are not cast
  EXPECT_EQ(step(*odd_model("narrow_output")).outputs[0].scalar_type(), at::kFloat);

  const auto failing = odd_model("c10");
  failing->autocast(at::kBFloat16);
  EXPECT_THROW(step(*failing), Error);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

// How many elements the dropout of a model takes out of 192.
int64_t dropped(Model& model, hr_mode mode) {
  const std::vector<uint64_t> keys(64);
  const std::vector<at::Tensor> batch = {at::ones({64, 3})};
  // y = dropout(x) * weight * table, and no weight is 0.
  return model.step(mode, 0, keys, batch, true).outputs[0].eq(0).sum().item<int64_t>();
}

TEST(TorchModel, ModulesTrainAndEvaluateAsTheCallSays) {
  const auto model = odd_model("drops");
  EXPECT_GT(dropped(*model, HR_TRAIN), 0);
  EXPECT_EQ(dropped(*model, HR_EVAL), 0);
  EXPECT_GT(dropped(*model, HR_TRAIN), 0);
}

TEST(TorchModel, ModulesThatTheConstructorLeftInEvalStayThere) {
  const auto model = odd_model("keeps_eval");
  for (const hr_mode mode : {HR_TRAIN, HR_EVAL, HR_TRAIN}) EXPECT_EQ(dropped(*model, mode), 0);
}

TEST(TorchModel, ATensorWithTwoNamesIsOneParameter) {
  const auto model = odd_model("tied");
  ASSERT_EQ(model->parameters().size(), 3u);
  EXPECT_EQ(model->parameters()[0].name, "weight");
  EXPECT_EQ(model->parameters()[1].name, "count");
}

TEST(TorchModel, KeepsItsState) {
  const auto model = odd_model();
  EXPECT_EQ(model->save_state(), "fresh");
  model->load_state(std::string_view("a\0b", 3));
  EXPECT_EQ(model->save_state(), std::string("a\0b", 3));
  const hr_gc* gc = odd().gc();
  ASSERT_NE(gc, nullptr);
  EXPECT_NE(gc->trim_model, nullptr);
  EXPECT_EQ(gc->trim_source, nullptr);
}

struct Broken {
  std::string how, sentence;
};
void PrintTo(const Broken& one, std::ostream* out) { *out << one.how; }

class BrokenStep : public testing::TestWithParam<Broken> {};

TEST_P(BrokenStep, IsASentence) {
  const auto model = odd_model(GetParam().how);
  EXPECT_THAT([&] { step(*model); }, testing::ThrowsMessage<Error>("[odd_model] " + GetParam().sentence));
}

const std::string kBreaks = "the model's step breaks the contract: ";
INSTANTIATE_TEST_SUITE_P(
    Each, BrokenStep,
    testing::Values(
        Broken{"writes", kBreaks + "it wrote to its input 'x': inputs are read-only"},
        Broken{"mean", kBreaks + "loss_sum has 1 axes instead of none: return a sum, not one value a sample"},
        Broken{"weights", kBreaks + "weight has 1 axes instead of none: return a sum, not one value a sample"},
        Broken{"narrow_loss", kBreaks +
                                  "loss_sum is a BFloat16, too narrow for a sum: take what it is made of to float32 "
                                  "before adding it up"},
        Broken{"no_output", kBreaks + "output 'prediction' was not assigned"},
        Broken{"nothing", "a step with x Float [2, 3] failed: step() returned no loss_sum"},
        Broken{"few_outputs", "a step with x Float [2, 3] failed: step() returned 1 outputs; the model declares 2"},
        Broken{"no_outputs", "a step with x Float [2, 3] failed: step() returned 2 outputs; the model declares 0"},
        Broken{"few_metrics", "a step with x Float [2, 3] failed: step() returned 1 metrics; the model declares 2"},
        Broken{"c10", "a step with x Float [2, 3] failed: shape '[1, 2, 3, 4, 5]' is invalid for input of size 6"}),
    [](const auto& one) { return one.param.how; });

TEST(TorchModel, OutOfMemoryStaysOne) {
  const auto model = odd_model("oom");
  EXPECT_THROW(step(*model), c10::OutOfMemoryError);
}

TEST(TorchModel, AStateThatDoesNotFitThrowsNothingThroughThePlugin) {
  const auto model = odd_model("endless_state");
  EXPECT_THROW(model->save_state(), std::bad_alloc);
}

TEST(TorchModel, RefusalsWhileBuilding) {
  EXPECT_THAT(
      [] { odd_model("create_fails"); },
      testing::ThrowsMessage<Error>("[odd_model] the model needs a field 'no_such_field'; the data source gives x"));
  EXPECT_THAT([] { odd_model("create_c10"); },
              testing::ThrowsMessage<Error>("[odd_model] building the model failed: a c10 error"));
  EXPECT_THAT([] { odd_model("twins"); },
              testing::ThrowsMessage<Error>(
                  "[odd_model] the model describes itself inconsistently: it declares parameter 'same' twice"));
  EXPECT_THAT([] { odd_model("scale"); },
              testing::ThrowsMessage<Error>(
                  "[odd_model] the model describes itself inconsistently: parameter 'weight' has the scale -1.000000"));
  EXPECT_THAT([] { odd_model("one_tensor"); },
              testing::ThrowsMessage<Error>("[odd_model] the model describes itself inconsistently: 'weight' and "
                                            "'table' are one tensor: declare it under one name"));
  EXPECT_THAT(
      [] { Model(toy(), {}, fields_x(), 1); },
      testing::ThrowsMessage<Error>("[toy_source] this plugin is not a model: it offers no headroom.model.torch/1"));
}

TEST(TorchModel, Conformance) {
  for (const char* plugin : {HEADROOM_EXAMPLE_DIR "/linear_model.so", HEADROOM_EXAMPLE_DIR "/classifier.so",
                             HEADROOM_TEST_PLUGIN_DIR "/odd_model.so"}) {
    for (const CheckResult& check : check_plugin(plugin)) {
      EXPECT_NE(check.outcome, CheckResult::Outcome::fail) << plugin << ": " << check.name << ": " << check.sentence;
    }
  }
}

TEST(TorchModel, OfReleaseOneWorksInThisHost) {
  const Library library = load(HEADROOM_TEST_PLUGIN_DIR "/torch_model_1_0.so");
  EXPECT_TRUE(library.recompute_kinds().empty());
  Model model(library, {}, fields_x(), 1);
  const StepResult result = step(model);
  EXPECT_EQ(result.loss_sum.item<double>(), 12.0);
  EXPECT_EQ(result.weight.item<double>(), 2.0);
}

TEST(TorchModel, TablesAsJson) {
  const nlohmann::json description = describe_plugin(linear());
  EXPECT_EQ(description.at("torch_tag"), host_torch_tag());
  EXPECT_EQ(description.at("interfaces").at(HR_MODEL_TORCH).at("capabilities"),
            (nlohmann::json{"fp64", "bf16", "fp16", "rng_keyed"}));
  EXPECT_TRUE(describe_plugin(odd()).at("interfaces").contains(HR_STATE));
  EXPECT_TRUE(describe_plugin(odd()).at("interfaces").contains(HR_GC));
}

std::shared_ptr<const Source> toy_classes() {
  const Library library = load(HEADROOM_EXAMPLE_DIR "/toy_classes.so");
  return Source::open(library, options(to_option_table(library.datasource()->options), "names = [\"a\", \"b\"]"));
}

std::unique_ptr<Model> classifier(const std::string& toml) {
  const Library library = load(HEADROOM_EXAMPLE_DIR "/classifier.so");
  return std::make_unique<Model>(library, options(to_option_table(library.model_torch()->options), toml),
                                 toy_classes()->fields(), 0);
}

const at::Tensor& class_weights(Model& model) {
  const auto found = std::ranges::find(model.parameters(), "class_weights", &Parameter::name);
  return *found->tensor;
}

TEST(Classes, AreToldByModelAndSource) {
  EXPECT_EQ(toy_classes()->class_names(1), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(toy_classes()->class_names(0).empty());
  EXPECT_TRUE(toy_classes()->class_names(7).empty());
  const auto model = classifier("classes = 2");
  ASSERT_TRUE(model->outputs()[0].classes.has_value());
  EXPECT_EQ(model->outputs()[0].classes->count, 2);
  EXPECT_EQ(model->outputs()[0].classes->field, "label");
  EXPECT_TRUE(model->outputs()[0].classes->names.empty());
  EXPECT_FALSE(model->outputs()[0].classes->counted);
  EXPECT_FALSE(model->outputs()[1].classes.has_value());
  EXPECT_FALSE(odd_model()->outputs()[0].classes.has_value());
  EXPECT_TRUE(describe_plugin(load(HEADROOM_EXAMPLE_DIR "/classifier.so")).at("interfaces").contains(HR_CLASSES));
  EXPECT_TRUE(describe_plugin(load(HEADROOM_EXAMPLE_DIR "/toy_classes.so")).at("interfaces").contains(HR_CLASS_NAMES));
}

TEST(Classes, AreBalancedByTheirCounts) {
  const auto model = classifier("classes = 2\nclass_weights = \"balanced\"");
  ASSERT_TRUE(model->outputs()[0].classes->counted);
  EXPECT_TRUE(class_weights(*model).equal(at::ones({2})));
  model->balance(0, std::vector<uint64_t>{30, 10});
  EXPECT_TRUE(at::allclose(class_weights(*model), at::tensor({40.0f / 60.0f, 2.0f})));
  const std::vector<at::Tensor> batch = {at::zeros({2, 8}), at::tensor({0, 1}, at::kLong)};
  EXPECT_NEAR(model->step(HR_TRAIN, 0, kKeys, batch).weight.item<double>(), 2.0 / 3.0 + 2.0, 1e-6);
  EXPECT_TRUE(class_weights(*classifier("classes = 2\nclass_weight_list = [1, 3]")).equal(at::tensor({1.0f, 3.0f})));
  EXPECT_THAT([] { classifier("classes = 2\nclass_weight_list = [1]"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("class_weight_list has 1 weights; classes = 2 needs")));
}

// Both examples together: the line behind the data comes out.
TEST(Examples, LinearModelLearnsTheToySource) {
  const Library source_library = toy(), model_library = linear();
  const auto source = Source::open(
      source_library, options(to_option_table(source_library.datasource()->options), "samples = 256\nnoise = 0.0"));
  Model model(model_library, options(to_option_table(model_library.model_torch()->options), ""), source->fields(), 0);
  const auto samples = static_cast<int64_t>(source->length(0));
  const at::Tensor x = at::empty({samples, 3}), y = at::empty({samples, 1});
  std::vector<uint64_t> index, key;
  for (uint64_t i = 0; i < source->length(0); ++i) {
    index.push_back(i);
    key.push_back(hr_sample_key(0, 0, 0, i));
  }
  int64_t x_shape[] = {samples, 3}, y_shape[] = {samples, 1};
  const DLTensor slots[] = {{x.data_ptr(), {kDLCPU, 0}, 2, source->fields()[0].dtype, x_shape, nullptr, 0},
                            {y.data_ptr(), {kDLCPU, 0}, 2, source->fields()[1].dtype, y_shape, nullptr, 0}};
  source->reader().read(0, index, key, true, slots);

  const std::vector<at::Tensor> batch = {x, y};
  double last = 0.0;
  for (int64_t at = 0; at < 200; ++at) {
    const StepResult result = model.step(HR_TRAIN, at, key, batch);
    (result.loss_sum / result.weight).backward();
    last = result.loss_sum.item<double>() / result.weight.item<double>();
    const at::NoGradGuard no_grad;
    for (Parameter& parameter : model.parameters()) {
      parameter.tensor->sub_(0.1 * parameter.tensor->grad());
      parameter.tensor->mutable_grad().reset();
    }
  }
  EXPECT_LT(last, 1e-6);
  EXPECT_TRUE(at::allclose(*model.parameters()[0].tensor, at::tensor({1.0f, 2.0f, 3.0f}).reshape({1, 3}), 1e-3, 1e-3));
  EXPECT_NEAR(model.parameters()[1].tensor->item<double>(), 0.5, 1e-3);
}

}  // namespace
}  // namespace headroom
