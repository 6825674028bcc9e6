// Whole runs under memory.limit: what fits in smaller pieces ends as the unlimited run does, what cannot fit says so.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t mib = 1 << 20;

// The float64 tensors of a safetensors file, one after the other.
std::vector<double> weights_in(const fs::path& file) {
  const std::string text = read_text(file);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data(), sizeof header_bytes);
  const Json header = Json::parse(text.substr(8, header_bytes));
  std::vector<double> weights;
  for (const auto& [name, entry] : header.items()) {
    if (!entry.contains("dtype") || entry.at("dtype") != "F64") continue;
    const uint64_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    const size_t first = weights.size();
    weights.resize(first + (end - begin) / sizeof(double));
    std::memcpy(&weights[first], text.data() + 8 + header_bytes + begin, end - begin);
  }
  return weights;
}

// Of all weights, relative to the largest one.
double largest_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    difference = std::max(difference, std::abs(ours[i] - theirs[i]));
    largest = std::max(largest, std::abs(theirs[i]));
  }
  return difference / largest;
}

// A hidden layer so wide that activations outweigh all else.
class MemoryRun : public TrialRun {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#endif
    TrialRun::SetUp();
  }
  static std::vector<std::string> with(std::vector<std::string> more) {
    std::vector<std::string> all = {"model.options.hidden=12000",
                                    "model.options.remember=false",
                                    "model.options.dropout=0",
                                    "data.options.samples=128",
                                    "data.num_workers=0",
                                    "train.batch_size=48",
                                    "train.gradient_accumulation_steps=1",
                                    "train.epochs=2",
                                    "train.precision=fp64"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string limit(int64_t bytes) { return "memory.limit=" + std::to_string(bytes); }

  Json finished(const std::vector<std::string>& more, const std::string& out) const {
    const Finished end = run(with(more), out);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return end.exit_code == 0 ? read_json(run_folder(out) / "summary.json") : Json();
  }
  int64_t peak(const std::string& out) const {
    return read_json(run_folder(out) / "summary.json").at("memory").at("measured_peak_bytes");
  }
  fs::path weights(const std::string& out) const { return run_folder(out) / "checkpoints/last/model.safetensors"; }
};

TEST_F(MemoryRun, WhatFitsInSmallerPiecesEndsAsTheUnlimitedRunDoes) {
  finished({"memory.limit=off"}, "free");
  finished({"memory.limit=off", "train.micro_batch=1"}, "by_ones");
  ASSERT_FALSE(HasFailure());
  ASSERT_GT(peak("free") - peak("by_ones"), 60 * mib) << "else the limit would cut nothing";
  const int64_t between = peak("by_ones") + (peak("free") - peak("by_ones")) / 2;

  const Json summary = finished({limit(between)}, "limited");
  ASSERT_FALSE(HasFailure());
  const Json& memory = summary.at("memory");
  EXPECT_EQ(memory.at("limit_bytes"), between);
  EXPECT_LE(memory.at("measured_peak_bytes"), between);
  EXPECT_GE(memory.at("retries").at("train").at("repeated"), 1) << memory.dump(2);
  EXPECT_GE(memory.at("retries").at("train").at("halved"), 1) << memory.dump(2);
  EXPECT_LT(memory.at("retries").at("train").at("micro_batch"), 48);
  EXPECT_LE(largest_difference(weights_in(weights("limited")), weights_in(weights("free"))), 1e-8);
  const auto events = read_json_lines(run_folder("limited") / "events.jsonl");
  const auto shortage =
      std::ranges::find_if(events, [](const Json& event) { return event.at("kind") == "out_of_memory"; });
  ASSERT_NE(shortage, events.end());
  EXPECT_GT(shortage->at("requested_bytes"), 0);

  // At one split, no limit that fits changes a bit.
  finished({"memory.limit=off", "train.micro_batch=6"}, "free_by_sixes");
  finished({limit(between), "train.micro_batch=6"}, "limited_by_sixes");
  EXPECT_TRUE(read_text(weights("free_by_sixes")) == read_text(weights("limited_by_sixes")));
  EXPECT_FALSE(read_text(weights("free_by_sixes")).empty());
}

TEST_F(MemoryRun, WhatCannotFitEndsWithTheLedgerTheNeedAndTheKnobs) {
  const std::vector<std::string> wide = {"model.options.hidden=200000", "data.options.samples=16", "train.batch_size=2",
                                         "train.epochs=1"};
  const auto under = [&](const std::string& setting) {
    std::vector<std::string> all = wide;
    all.push_back(setting);
    return all;
  };
  std::vector<std::string> by_ones = under("memory.limit=off");
  by_ones.emplace_back("train.micro_batch=1");
  const Json free = finished(by_ones, "by_ones");
  ASSERT_FALSE(HasFailure());
  const int64_t activations = free.at("memory").at("peak_bytes").at("activations");
  ASSERT_GT(activations, 25 * mib);
  int64_t between_windows = 0;  // without what the allocator keeps
  for (const Json& line : read_json_lines(run_folder("by_ones") / "memory.jsonl"))
    between_windows =
        std::max(between_windows, line.at("held_bytes").get<int64_t>() - line.at("slack_bytes").get<int64_t>());
  const int64_t too_little = between_windows + activations / 2;

  const Finished refused = run(with(under(limit(too_little))), "refused");
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  const size_t begin = refused.err.rfind("[memory] no memory for ");
  ASSERT_NE(begin, std::string::npos) << refused.err;
  const std::string sentence = refused.err.substr(begin);
  for (const char* part : {"ward with a micro-batch of 1: ", " more were asked for beside ", " that were held",
                           ", under the limit of ", ". Held: ", "parameters 7.6 MiB, ", "other ",
                           "To make it fit, with the same mathematics, cheapest first: 1) raise memory.limit",
                           "a smaller train.batch_size with more train.gradient_accumulation_steps (now 2 x 1)",
                           "Changing the mathematics: 1) train.precision = \"fp32\""}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << part << " is not in: " << sentence;
  }
  EXPECT_EQ(sentence.find('\n'), sentence.size() - 1) << "more than a sentence: " << sentence;
  const Json summary = read_json(run_folder("refused") / "summary.json");
  EXPECT_EQ(summary.at("state"), "failed");
  EXPECT_EQ(summary.at("error").get<std::string>() + "\n", sentence);
  const Json postmortem = read_json(run_folder("refused") / "postmortem.json");
  EXPECT_EQ(postmortem.at("ended").at("error"), summary.at("error")) << "of this life of the run";
  EXPECT_LE(summary.at("memory").at("measured_peak_bytes"), too_little);
  EXPECT_EQ(read_json_lines(run_folder("refused") / "events.jsonl").back().at("exit_code"), 5);

  EXPECT_EQ(run(with(under("memory.limit=off")), "off").exit_code, 0);
  EXPECT_EQ(read_json(run_folder("off") / "summary.json").at("memory").at("limit_bytes"), 0);
}

// Batches of 32 MB: the plan counts all that would be read ahead, and the run does without most of them.
TEST_F(MemoryRun, APlannedRunMayFitWithFewerBatchesReadAhead) {
  write_text(folder_ / "trial.toml", R"([experiment]
name = "trial"
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
samples = 12000
inputs = 1000
[train]
batch_size = 8000
max_steps = 8
)");
  const auto planned = [&](const std::string& limit, const std::string& out) {
    return headroom_program({"run", "trial.toml", "--out", out, "--plugin-dir", HEADROOM_BUILD_DIR "/examples", "--set",
                             "memory.limit=" + limit},
                            here({"XDG_CACHE_HOME=" + (folder_ / "cache").string()}));
  };
  const Finished free = planned("off", "free");
  ASSERT_EQ(free.exit_code, 0) << free.err;
  const Finished refused = planned("80 MiB", "refused");
  ASSERT_EQ(refused.exit_code, 5) << refused.err;
  double least_mib = 0, limit_mib = 0, kept_free_mib = 0;
  const size_t told = refused.err.find("it needs at least ");
  ASSERT_NE(told, std::string::npos) << refused.err;
  ASSERT_EQ(
      std::sscanf(refused.err.c_str() + told, "it needs at least %lf MiB and the limit is %lf MiB, of which %lf MiB",
                  &least_mib, &limit_mib, &kept_free_mib),
      3)
      << refused.err;
  const auto enough_mib = static_cast<int64_t>(std::ceil(least_mib + kept_free_mib)) + 3;
  const Finished tight = planned(std::to_string(enough_mib) + " MiB", "tight");
  EXPECT_EQ(tight.exit_code, 0) << tight.err;
  EXPECT_NE(tight.err.find("fewer batches are read ahead and less is cached"), std::string::npos) << tight.err;
  const auto loss = [&](const std::string& out) {
    return read_json(run_folder(out) / "summary.json").at("metrics").at("val/loss").get<double>();
  };
  EXPECT_NEAR(loss("tight"), loss("free"), 1e-4 * loss("free"));
}

TEST_F(MemoryRun, WhatPluginsSayThatTheyHoldIsOnTheLine) {
  const Finished finished = run({"train.epochs=1", "data.options.masked=[1,2]"}, "told");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("; of other, plugins say: trial_source/lists "), std::string::npos) << finished.err;
  const auto lines = read_json_lines(run_folder("told") / "memory.jsonl");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front().at("plugin_bytes"), (nlohmann::json{{"trial_source/lists", 16}}));
}

// Less than the libraries hold before the first tensor.
TEST_F(MemoryRun, ALimitBelowItsOwnStartIsExitFiveToo) {
  for (const char* little : {"1 MiB", "24 MiB", "64 MiB"}) {
    const Finished refused = run({std::string("memory.limit=") + little, "train.epochs=1"}, "out");
    if (refused.exit_code == 0) continue;  // the last may do
    EXPECT_EQ(refused.exit_code, 5) << little << refused.err;
    EXPECT_NE(refused.err.find("[memory] "), std::string::npos) << little << refused.err;
    EXPECT_EQ(refused.err.find("[bug]"), std::string::npos) << little << refused.err;
  }
}

}  // namespace
}  // namespace headroom
