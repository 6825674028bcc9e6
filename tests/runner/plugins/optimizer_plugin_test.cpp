#include "plugins/optimizer_plugin.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plugins/conformance.hpp"
#include "plugins/describe.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* faulty = HEADROOM_TEST_PLUGIN_DIR "/faulty_optimizer.so";
constexpr const char* muon = HEADROOM_EXAMPLE_DIR "/muon.so";

TrainSection train_with(const std::string& options) {
  TrainSection train;
  train.optimizer.name = "a_plugin";
  train.optimizer.place = "my.toml:3:20";
  train.optimizer_options = toml::parse(options);
  return train;
}

// "exit code: sentence" of what it throws.
template <class Action>
std::string refusal_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.exit_code())) + ": " + error.what();
  }
  return "accepted";
}

// A parameter of one shape, with what an optimizer asked for it.
struct Tensor {
  Tensor(const OptimizerPlugin& plugin, std::vector<int64_t> extents, std::vector<float> start)
      : shape(std::move(extents)), values(std::move(start)), gradient(values.size(), 1.0f) {
    trained = {
        sizeof(hr_trained), static_cast<int32_t>(shape.size()), "w", nullptr, {kDLFloat, 32, 1}, 0u, shape.data(),
        values.size()};
    const OptimizerPlugin::Needs needs = plugin.needs(trained);
    for (const auto& buffer : needs.state) state.emplace_back(buffer.elements, 0.0f);
    for (auto& buffer : state) native.push_back({buffer.data(), buffer.size()});
    scratch.resize(needs.scratch);
  }
  void step(const OptimizerPlugin& plugin, double lr, double decay) {
    const hr_update update{sizeof(hr_update),
                           0u,
                           &trained,
                           lr,
                           decay,
                           updates++,
                           {values.data(), values.size()},
                           {gradient.data(), gradient.size()},
                           native.data(),
                           native.size(),
                           {scratch.data(), scratch.size()}};
    plugin.step(0, {&update, 1});
  }

  std::vector<int64_t> shape;
  std::vector<float> values, gradient, scratch;
  std::vector<std::vector<float>> state;
  std::vector<hr_buffer> native;
  hr_trained trained{};
  int64_t updates = 0;
};

TEST(FindOptimizer, IsOursOrAPlugins) {
  const std::vector<fs::path> folders = {HEADROOM_EXAMPLE_DIR};
  OptimizerSection section;
  EXPECT_FALSE(find_optimizer(section, folders));
  section.name = "muon";
  EXPECT_EQ(find_optimizer(section, folders), fs::path(muon));
  section = {.name = "adamv", .place = "my.toml:3:20"};
  EXPECT_THAT(refusal_of([&] { find_optimizer(section, folders); }),
              HasSubstr(R"(2: [config] my.toml:3:20: train.optimizer.name is "adamv"; it must be "adam", "adamw", )"
                        R"("sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin: did you mean )"
                        R"("adamw"? (no plugin 'adamv' in )"));
}

TEST(OptimizerPlugin, IsRefusedWhereThePluginHasNone) {
  const Library source = Library::load(HEADROOM_EXAMPLE_DIR "/toy_source.so");
  EXPECT_THAT(refusal_of([&] { OptimizerPlugin(source, train_with(""), *Session::of_process()); }),
              HasSubstr("2: [config] my.toml:3:20: train.optimizer.name is \"a_plugin\"; it must be"));
}

TEST(OptimizerPlugin, ChecksItsOptions) {
  const Library library = Library::load(muon);
  const auto refused = [&](const std::string& options) {
    return refusal_of([&] { OptimizerPlugin(library, train_with(options), *Session::of_process()); });
  };
  EXPECT_EQ(refused("momentum = 0.9"), "accepted");
  EXPECT_THAT(refused("ns_steps = 0"), testing::StartsWith("2: [config] "));
  EXPECT_THAT(refused("ns_step = 5"),
              HasSubstr("unknown option train.optimizer_options.ns_step of optimizer 'muon'; did you mean ns_steps"));
  // By the plugin itself.
  EXPECT_THAT(
      refused("momentum = 1.0"),
      HasSubstr("train.optimizer_options: optimizer 'muon' refuses them: momentum is 1.000000; it must be below 1"));
}

TEST(OptimizerPlugin, SaysWhatItNeedsOfSoundSizes) {
  const Library library = Library::load(faulty);
  const auto asked = [&](const char* fault) {
    return refusal_of([&] {
      const OptimizerPlugin plugin(library, train_with("fault = \"" + std::string(fault) + "\""),
                                   *Session::of_process());
      Tensor(plugin, {2}, {1, 2});
    });
  };
  EXPECT_EQ(asked("none"), "accepted");
  for (const char* fault : {"name", "twice", "empty", "endless", "scratch"}) {
    EXPECT_THAT(asked(fault), HasSubstr("3: [faulty_optimizer] for parameter 'w' it asks for ")) << fault;
  }
  EXPECT_THAT(asked("endless"), HasSubstr("a buffer 'sum' of 18446744073709551615 elements"));
}

TEST(OptimizerPlugin, AFailedStepIsABugOfThePlugin) {
  const Library library = Library::load(faulty);
  for (const char* fault : {"throws", "memory"}) {
    const OptimizerPlugin plugin(library, train_with("fault = \"" + std::string(fault) + "\""), *Session::of_process());
    Tensor tensor(plugin, {2}, {1, 2});
    EXPECT_THAT(refusal_of([&] { tensor.step(plugin, 0.1, 0.0); }),
                HasSubstr("3: [faulty_optimizer] optimizer step 1 failed: "))
        << fault;
  }
}

TEST(OptimizerPlugin, WorksInTheTypesItSays) {
  const OptimizerPlugin single(Library::load(faulty), train_with(""), *Session::of_process());
  EXPECT_NO_THROW(single.require_precision("bf16"));
  EXPECT_EQ(refusal_of([&] { single.require_precision("fp64"); }),
            "2: [train.precision] optimizer 'faulty_optimizer' does not work in \"fp64\": use \"fp32\", \"bf16\" or "
            "\"fp16\"");
  EXPECT_NO_THROW(
      OptimizerPlugin(Library::load(muon), train_with(""), *Session::of_process()).require_precision("fp64"));
}

TEST(Muon, TurnsTheMomentumOfAMatrixIntoAnOrthogonalOne) {
  const OptimizerPlugin plugin(Library::load(muon), train_with("ns_steps = 12"), *Session::of_process());
  for (const auto& shape : {std::vector<int64_t>{2, 3}, std::vector<int64_t>{3, 2}}) {
    Tensor w(plugin, shape, {0, 0, 0, 0, 0, 0});
    w.gradient = {1, 2, -1, 0.5f, -3, 2};
    w.step(plugin, 1.0, 0.0);
    // Singular values come within 0.3 of 1 (times the factor of a tall one): so do the rows of the wide form.
    const bool wide = shape[0] == 2;
    const double factor = wide ? 1.0 : std::sqrt(1.5);
    double squares = 0.0;
    for (const float value : w.values) squares += value / factor * (value / factor);
    EXPECT_NEAR(squares, 2.0, 0.9);
    EXPECT_LT(w.values[0], 0.0f);  // against the gradient
  }
}

TEST(Muon, TrainsAVectorAsAdamWDoes) {
  const OptimizerPlugin plugin(Library::load(muon), train_with("adam_lr_scale = 0.5\neps = 0.0"),
                               *Session::of_process());
  Tensor w(plugin, {3}, {1, 1, 1});
  w.gradient = {2, -2, 4};
  w.step(plugin, 0.2, 0.1);
  // The first step of Adam is the sign of the gradient; 1 - 0.1 * 0.1 of the weight is kept.
  EXPECT_NEAR(w.values[0], 0.99 - 0.1, 1e-6);
  EXPECT_NEAR(w.values[1], 0.99 + 0.1, 1e-6);
  EXPECT_NEAR(w.values[2], 0.99 - 0.1, 1e-6);
}

TEST(OptimizerChecks, FindWhatIsRememberedBesideTheBuffers) {
  std::vector<std::string> failed;
  for (const CheckResult& check : check_plugin(HEADROOM_TEST_PLUGIN_DIR "/forgetful_optimizer.so")) {
    if (check.outcome == CheckResult::Outcome::fail) failed.push_back(check.name + ": " + check.sentence);
  }
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_THAT(failed[0], HasSubstr("optimizer: goes on bit-equal from its buffers: [plugin] an optimizer that is made "
                                   "anew after the first step goes on otherwise"));
}

TEST(OptimizerChecks, GiveBuffersThatAreAlignedAsPromised) {
  for (const CheckResult& check : check_plugin(HEADROOM_TEST_PLUGIN_DIR "/trustful_optimizer.so"))
    EXPECT_NE(check.outcome, CheckResult::Outcome::fail) << check.name << ": " << check.sentence;
}

TEST(Muon, PassesTheChecksOfAPlugin) {
  for (const CheckResult& check : check_plugin(muon))
    EXPECT_NE(check.outcome, CheckResult::Outcome::fail) << check.name << ": " << check.sentence;
  EXPECT_EQ(describe_plugin(Library::load(muon)).at("interfaces").at(HR_OPTIMIZER).at("options").size(), 7u);
}

}  // namespace
}  // namespace headroom
