// What a profile says of its figures, as JSON and as text.
#include "profile/profile.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom {
namespace {

using Json = nlohmann::json;

constexpr int64_t ms = 1'000'000;

// Two steps of 10 ms and 30 ms: 8 to wait, 16 forward, 12 backward, 2 for the optimizer, 2 for the rest.
Profile two_steps() {
  Profile profile;
  profile.experiment = "trial";
  profile.model = "small_model";
  profile.source = "small_source";
  profile.device = "cpu";
  profile.threads = 2;
  profile.warm_up_steps = 5;
  profile.step_ns = {10 * ms, 30 * ms};
  profile.samples = 16;
  profile.micro_batch = 8;
  const auto add = [&](StepPhase phase, int64_t spent_ms, int64_t operators_ms) {
    const Spent spent{
        .ns = spent_ms * ms, .cpu_ns = 2 * spent_ms * ms, .minor_faults = spent_ms, .operators_ns = operators_ms * ms};
    profile.phases[static_cast<size_t>(phase)] = spent;
    profile.steps += spent;
  };
  add(StepPhase::wait, 8, 0);
  add(StepPhase::forward, 16, 12);
  add(StepPhase::backward, 12, 12);
  add(StepPhase::optimizer, 2, 1);
  add(StepPhase::other, 2, 0);
  for (int64_t i = 0; i < 25; ++i)
    profile.operators.push_back(
        {.name = "aten::op" + std::to_string(i), .calls = 4, .self_ns = ms, .total_ns = 2 * ms});
  profile.plugin_calls = {{.plugin = "small_model", .entry = "step", .in_step = true, .calls = 4, .ns = 16 * ms},
                          {.plugin = "small_source", .entry = "read", .in_step = false, .calls = 6, .ns = 5 * ms}};
  profile.reading.decode = 0.004;
  profile.memory.peak_bytes[static_cast<size_t>(Owner::activations)] = 3 << 20;
  profile.memory.peak_held_bytes = 200 << 20;
  profile.limit_bytes = int64_t{1} << 30;
  return profile;
}

TEST(Profile, IsOfOneStep) {
  const Json json = two_steps().json();
  EXPECT_EQ(json.at("steps"), 2);
  EXPECT_DOUBLE_EQ(json.at("step").at("ms"), 20.0);
  EXPECT_DOUBLE_EQ(json.at("step").at("median_ms"), 30.0);
  EXPECT_DOUBLE_EQ(json.at("step").at("samples"), 8.0);
  EXPECT_DOUBLE_EQ(json.at("step").at("threads_busy"), 2.0);
  EXPECT_DOUBLE_EQ(json.at("step").at("minor_faults"), 20.0);
  EXPECT_DOUBLE_EQ(json.at("outside_model").at("ms"), 5.0);
  EXPECT_DOUBLE_EQ(json.at("outside_model").at("share"), 0.25);
  EXPECT_DOUBLE_EQ(json.at("outside_operators").at("ms"), 7.5);
  EXPECT_EQ(json.at("operators").size(), 25u);
  EXPECT_DOUBLE_EQ(json.at("operators")[0].at("self_ms"), 0.5);
  EXPECT_DOUBLE_EQ(json.at("operators")[0].at("total_ms"), 1.0);
  EXPECT_DOUBLE_EQ(json.at("operators")[0].at("calls"), 2.0);
  EXPECT_DOUBLE_EQ(json.at("operators")[0].at("share"), 0.025);
  EXPECT_DOUBLE_EQ(json.at("plugin_calls")[0].at("share"), 0.4);
  EXPECT_TRUE(json.at("plugin_calls")[1].at("share").is_null()) << "what runs beside a step has no share of it";
  EXPECT_DOUBLE_EQ(json.at("reading").at("decode_ms"), 2.0);
  EXPECT_EQ(json.at("memory").at("peak_bytes").at("activations"), 3 << 20);
  EXPECT_TRUE(json.at("trace").is_null());
  double together = 0.0;
  for (const Json& phase : json.at("phases")) together += phase.at("ms").get<double>();
  EXPECT_DOUBLE_EQ(together, 20.0);
}

TEST(Profile, ShowsAsManyOperatorsAsAreWanted) {
  const std::string text = two_steps().text(20);
  EXPECT_NE(text.find("trial: small_model on small_source, 2 steps after 5 of warm-up"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::op19\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("aten::op20"), std::string::npos) << text;
  EXPECT_NE(text.find("5 more (--all shows them)"), std::string::npos) << text;
  EXPECT_NE(text.find("outside forward, backward and optimizer: 5.000 ms, 25.0 % of the step\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("activations 3.0 MiB; the process 200.0 MiB of 1.0 GiB"), std::string::npos) << text;
  const std::string all = two_steps().text(SIZE_MAX);
  EXPECT_NE(all.find("aten::op24\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("--all"), std::string::npos) << all;
}

TEST(Profile, OneIsNotMany) {
  Profile profile = two_steps();
  profile.threads = 1;
  profile.step_ns = {40 * ms};
  const std::string text = profile.text(20);
  EXPECT_NE(text.find(", 1 step after 5 of warm-up; micro-batch 8, 1 thread on cpu\n"), std::string::npos) << text;
}

TEST(Profile, AProfileOfNothingIsNoDivisionByZero) {
  const Profile nothing;
  EXPECT_EQ(nothing.json().at("step").at("ms"), 0.0);
  EXPECT_EQ(nothing.text(20).find("nan"), std::string::npos) << nothing.text(20);
}

}  // namespace
}  // namespace headroom
