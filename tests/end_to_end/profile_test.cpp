// `headroom profile`: its figures, its trace, and that nothing of its run stays.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ProfileRun : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    // Two steps an epoch: its measured steps go over the data many times.
    write_text(folder_ / "linear.toml", R"([experiment]
name = "line"
device = "cpu"
threads = 1
[model]
plugin = "linear_model"
[data]
source = "toy_source"
num_workers = 2
max_samples_for_normalize = 64
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 256
inputs = 8
[train]
batch_size = 16
gradient_accumulation_steps = 6
epochs = 1
log_every = 1
[checkpoint]
every_steps = 5
)");
    fs::create_directory(folder_ / "tmp");
  }

  Finished profile(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"profile", "linear.toml", "--no-plan", "--plugin-dir", HEADROOM_BUILD_DIR "/examples"});
    return headroom_program(std::move(words), here({"TMPDIR=" + (folder_ / "tmp").string()}));
  }
  void expect_nothing_left() const {
    EXPECT_FALSE(fs::exists(folder_ / "runs"));
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
  }
};

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }

// Complete events of a trace, by their category.
std::map<std::string, std::vector<Json>> spans_of(const Json& trace) {
  std::map<std::string, std::vector<Json>> spans;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") spans[event.at("cat")].push_back(event);
  }
  return spans;
}

// Half a nanosecond: times are written to the last of them.
constexpr double rounding_us = 5e-4;
double end_of(const Json& span) { return number(span, "ts") + number(span, "dur"); }
bool is_within(const Json& inner, const Json& outer) {
  return inner.at("tid") == outer.at("tid") && number(inner, "ts") >= number(outer, "ts") - rounding_us &&
         end_of(inner) <= end_of(outer) + rounding_us;
}

TEST_F(ProfileRun, ItsPhasesAddUpToTheStep) {
  const Finished finished = profile({"--steps", "10", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = Json::parse(finished.out);
  EXPECT_EQ(json.at("steps"), 10);
  EXPECT_EQ(json.at("warm_up_steps"), 5);
  EXPECT_EQ(json.at("model"), "linear_model");
  EXPECT_EQ(json.at("source"), "toy_source");
  EXPECT_EQ(json.at("micro_batch"), 16);
  EXPECT_DOUBLE_EQ(number(json.at("step"), "samples"), 96.0);
  const double step_ms = number(json.at("step"), "ms");
  EXPECT_GT(step_ms, 0.0);
  double phases_ms = 0.0, shares = 0.0, inside_ms = 0.0;
  std::map<std::string, double> by_name;
  for (const Json& phase : json.at("phases")) {
    const std::string name = phase.at("phase");
    by_name[name] = number(phase, "ms");
    phases_ms += number(phase, "ms");
    shares += number(phase, "share");
    if (name == "forward" || name == "backward" || name == "optimizer") inside_ms += number(phase, "ms");
  }
  EXPECT_EQ(by_name.size(), 8u);
  for (const char* name :
       {"wait for data", "copy", "forward", "backward", "optimizer", "metrics and log", "checkpoint"})
    EXPECT_GT(by_name[name], 0.0) << name;
  EXPECT_NEAR(phases_ms, step_ms, 1e-9 * step_ms);
  EXPECT_NEAR(shares, 1.0, 1e-9);
  EXPECT_NEAR(number(json.at("outside_model"), "ms"), step_ms - inside_ms, 1e-9 * step_ms);
  expect_nothing_left();
}

TEST_F(ProfileRun, NamesOperatorsPluginCallsAndOwners) {
  const Finished finished = profile({"--steps", "4", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Json json = Json::parse(finished.out);
  std::map<std::string, Json> operators;
  double self_ms = number(json.at("outside_operators"), "ms"), last_ms = INFINITY;
  for (const Json& one : json.at("operators")) {
    operators[one.at("name")] = one;
    EXPECT_LE(number(one, "self_ms"), number(one, "total_ms")) << one;
    EXPECT_LE(number(one, "self_ms"), last_ms) << "by falling self time";
    last_ms = number(one, "self_ms");
    self_ms += last_ms;
  }
  EXPECT_NEAR(self_ms, number(json.at("step"), "ms"), 1e-6 * self_ms);
  ASSERT_TRUE(operators.contains("aten::addmm")) << finished.out;
  EXPECT_EQ(operators.at("aten::addmm").at("calls"), 6.0) << "a micro-batch of each batch";
  EXPECT_TRUE(operators.contains("AddmmBackward0")) << finished.out;
  EXPECT_TRUE(operators.contains("aten::_fused_adamw_")) << finished.out;
  std::map<std::pair<std::string, bool>, Json> calls;
  for (const Json& call : json.at("plugin_calls"))
    calls[{call.at("plugin").get<std::string>() + " " + call.at("entry").get<std::string>(), call.at("in_step")}] =
        call;
  ASSERT_TRUE(calls.contains({"linear_model step", true})) << finished.out;
  EXPECT_EQ((calls.at({"linear_model step", true}).at("calls")), 6.0);
  EXPECT_FALSE(calls.contains({"toy_source read", true})) << "readers have threads of their own";
  const Json& memory = json.at("memory");
  for (const char* owner : {"parameters", "gradients", "optimizer", "activations", "batches", "checkpoint"})
    EXPECT_TRUE(memory.at("peak_bytes").contains(owner)) << owner;
  EXPECT_GT(memory.at("peak_bytes").at("parameters"), 0);
  EXPECT_GT(memory.at("peak_bytes").at("batches"), 0);
  EXPECT_GT(memory.at("peak_held_bytes"), 0);
  EXPECT_GT(json.at("checkpoint").at("count"), 0);
}

TEST_F(ProfileRun, ItsTraceIsJsonWhoseSpansLieWithinEachOther) {
  const Finished finished = profile({"--steps", "3", "--trace", "trace.json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("trace: trace.json"), std::string::npos) << finished.out;
  const Json trace = Json::parse(read_text(folder_ / "trace.json"), nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(trace.is_discarded());
  auto spans = spans_of(trace);
  const std::vector<Json>& steps = spans["step"];
  ASSERT_EQ(steps.size(), 3u);
  for (const auto& [category, all] : spans) {
    for (const Json& span : all) EXPECT_GE(number(span, "dur"), 0.0) << span;
  }
  for (const char* category : {"phase", "operator"}) {
    EXPECT_FALSE(spans[category].empty()) << category;
    for (const Json& span : spans[category]) {
      EXPECT_TRUE(std::ranges::any_of(steps, [&](const Json& step) { return is_within(span, step); })) << span;
    }
  }
  for (const Json& step : steps) {
    double phases_us = 0.0;
    for (const Json& phase : spans["phase"]) {
      if (is_within(phase, step)) phases_us += number(phase, "dur");
    }
    EXPECT_NEAR(phases_us, number(step, "dur"), 1.0) << "no gap and no overlap";
  }
  const auto is_forward = [](const Json& span) { return span.at("name") == "forward"; };
  for (const Json& call : spans["plugin"]) {
    if (call.at("name") != "linear_model step") continue;
    EXPECT_TRUE(std::ranges::any_of(spans["phase"], [&](const Json& phase) {
      return is_forward(phase) && is_within(call, phase);
    })) << call;
  }
  EXPECT_EQ(std::ranges::count_if(spans["operator"], [](const Json& span) { return span.at("name") == "aten::addmm"; }),
            3 * 6);
  expect_nothing_left();
}

TEST_F(ProfileRun, TellsPeopleTheSameInTables) {
  const Finished finished = profile({"--steps", "2"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  for (const char* text :
       {"line: linear_model on toy_source, 2 steps after 5 of warm-up", "a step of 96 samples takes", "wait for data",
        "outside forward, backward and optimizer: ", "outside LibTorch's operators", "more (--all shows them)",
        "linear_model step", "memory at its peak: ", "a checkpoint takes "}) {
    EXPECT_NE(finished.out.find(text), std::string::npos) << text << "\n" << finished.out;
  }
  const Finished all = profile({"--steps", "2", "--all"});
  EXPECT_EQ(all.out.find("--all"), std::string::npos) << all.out;
  EXPECT_GT(all.out.size(), finished.out.size());
}

TEST_F(ProfileRun, KeepsToTheMemoryLimit) {
  const Finished finished = profile({"--steps", "2", "--json", "--set", "memory.limit=2 GiB"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(Json::parse(finished.out).at("memory").at("limit_bytes"), int64_t{2} << 30);
  expect_nothing_left();
}

TEST_F(ProfileRun, IsPlannedAsARunIs) {
  const auto planned = [&](const std::string& limit) {
    return headroom_program({"profile", "linear.toml", "--steps", "2", "--plugin-dir", HEADROOM_BUILD_DIR "/examples",
                             "--set", "memory.limit=" + limit},
                            here({"TMPDIR=" + (folder_ / "tmp").string()}));
  };
  const Finished fits = planned("off");
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_NE(fits.err.find("plan: a peak of"), std::string::npos) << fits.err;
  const Finished refused = planned("30 MiB");
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_NE(refused.err.find("[plan]"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.out, "");
  expect_nothing_left();
}

TEST_F(ProfileRun, WhatItCannotDoIsOneSentence) {
  const auto refused = [&](std::vector<std::string> words, const std::string& sentence, int exit_code) {
    const Finished finished = profile(std::move(words));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  };
  for (const char* steps : {"0", "-3", "many", "2.5", "100001"})
    refused({"--steps", steps}, "expected a number of steps from 1 to 100000, found '" + std::string(steps) + "'", 2);
  refused({"--trace", "missing/trace.json"}, "--trace missing/trace.json: there is no folder ", 2);
  refused({"--trace", "tmp"}, "--trace tmp is a folder: give the file that is to be written", 2);
  refused({"--set", "train.batch_sise=4"}, "did you mean train.batch_size", 2);
  const Finished missing = headroom({"profile", "nowhere.toml"});
  EXPECT_EQ(missing.exit_code, 2) << missing.err;
  EXPECT_NE(missing.err.find("nowhere.toml"), std::string::npos) << missing.err;
  expect_nothing_left();
}

}  // namespace
}  // namespace headroom
