// Data of the shape of real recordings, in whole epochs with validation and checkpoints: a run holds what its plan
// says, and finishes where its plan says that it fits - with readers, large batches and compressed chunks.
#include "memory/budget.hpp"
#include "small_network.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

constexpr int64_t mib = 1 << 20;

// The smallest limit that has room for `bytes` beside what stays free below it.
int64_t limit_for(int64_t bytes) {
  int64_t limit = bytes + cushion_bytes(bytes);
  while (limit - cushion_bytes(limit) < bytes) limit += 1024;
  return limit;
}

std::string set_limit(int64_t bytes) { return "memory.limit=" + std::to_string(bytes); }

// The line of a file of /proc that begins with `name`.
std::string line_of(const std::string& text, const std::string& name) {
  const size_t begin = text.find(name);
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

std::string proc_file(const std::string& process, const std::string& name) {
  return read_text("/proc/" + process + "/" + name);
}

class Recordings : public TrialRun {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#endif
    TrialRun::SetUp();
  }

  // Windows of muscle activity and joint angles, read by the source hdf5: emg.toml, and gzip.toml whose files are
  // compressed, in chunks of less than 1 MiB.
  void make_emg() const {
    const std::string head(small_network);
    write_text(folder_ / "made.toml", head + R"(
[data]
source = "emg_hdf5"
[data.options]
path = "made"
[data.synth]
sessions = 6
seconds = 6.0
)");
    succeeds({"data", "synth", "made.toml"});
    succeeds({"data", "convert", "made", "--out", "packed", "--deflate", "4", "--shuffle", "--chunk", "4096"});
    for (const auto& [file, path] : {std::pair("emg.toml", "made"), std::pair("gzip.toml", "packed")}) {
      write_text(folder_ / file, head + R"(
[data]
source = "hdf5"
split = { train = 0.7, val = 0.3, test = 0.0 }
[data.options]
path = ")" + path + R"("
window_size = 500
stride = 50
sample_rate_hz = 2000.0
fields = [
  { name = "emg", dataset = "/emg2pose/timeseries", member = "emg", normalize = true, axes = ["time", "channel"] },
  { name = "joint_angles", dataset = "/emg2pose/timeseries", member = "joint_angles", unit = "rad", axes = ["time", "joint"] },
]
[train]
epochs = 2
batch_size = 128
[checkpoint]
every_steps = 2
)");
    }
  }

  // Video and spikes, made when they are first read: spike.toml.
  void write_spike() const {
    write_text(folder_ / "spike.toml", "extends = \"" HEADROOM_SOURCE_DIR "/experiments/spike_vrt/quick_demo.toml\"\n" +
                                           std::string(R"([experiment]
name = "trial"
device = "cpu"
threads = 1
[model.options]
depths = [1, 1, 1, 1, 1, 1, 1, 1, 1]
embed_dims = [8, 8, 8, 8, 8, 8, 8, 12, 12]
[data.options]
path = "spike"
clip_length = 2
crop_size = 40
[data.synth]
sequences = 6
frames = 6
height = 64
width = 64
[train]
epochs = 2
[eval]
every_epochs = 1
[checkpoint]
every_steps = 2
)"));
  }

  Json plan(const std::string& file, const std::vector<std::string>& set) const {
    const Finished finished = headroom_program(words("plan", file, set, {"--json"}), place());
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out);
  }
  // Of the batch as it is written.
  static Json row(const Json& plan, int64_t micro_batch) {
    for (const Json& row : plan.at("rows")) {
      if (row.at("batch_size") == plan.at("as_written").at("batch_size") && row.at("micro_batch") == micro_batch)
        return row;
    }
    throw std::invalid_argument("no micro-batch of " + std::to_string(micro_batch) + " in " + plan.dump());
  }
  static int64_t least_limit(const Json& plan) { return limit_for(row(plan, 1).at("least_bytes")); }

  std::vector<std::string> planned_words(const std::string& file, const std::vector<std::string>& set,
                                         const std::string& out) const {
    return words("run", file, set, {"--out", out});
  }
  // Of a run that has to end well, within its limit if it has one, having validated and saved: its summary's memory.
  Json memory_of(const Finished& finished, const std::string& out) const {
    EXPECT_EQ(finished.exit_code, 0) << out << ": " << finished.err;
    if (finished.exit_code != 0) return {};
    const Json summary = read_json(run_folder(out) / "summary.json");
    EXPECT_TRUE(summary.at("metrics").contains("val/loss")) << out;
    EXPECT_FALSE(weights(out).empty()) << out;
    Json memory = summary.at("memory");
    const int64_t limit = memory.at("limit_bytes");
    if (limit > 0) {
      EXPECT_LE(memory.at("measured_peak_bytes").get<int64_t>(), limit) << out << ": " << finished.err;
    }
    return memory;
  }
  Json memory_of_run(const std::string& file, const std::vector<std::string>& set, const std::string& out) const {
    return memory_of(headroom_program(planned_words(file, set, out), place()), out);
  }
  StartPlace place() const { return here({"XDG_CACHE_HOME=" + (folder_ / "cache").string()}); }

 private:
  static std::vector<std::string> words(const std::string& command, const std::string& file,
                                        const std::vector<std::string>& set, const std::vector<std::string>& more) {
    std::vector<std::string> all = {command, file};
    all.insert(all.end(), more.begin(), more.end());
    for (const std::string& word : set) all.insert(all.end(), {"--set", word});
    return all;
  }
  void succeeds(const std::vector<std::string>& words) const {
    const Finished finished = headroom_program(words, place());
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
  }
};

// Stacks and arenas of readers are mapped and hardly written to. Nothing of ours counts them as memory.
TEST_F(Recordings, ReadersStartWhereTheLimitIsBelowWhatIsMapped) {
  write_spike();
  for (const std::string workers : {"1", "2"}) {
    const std::string out = "readers-" + workers;
    std::vector<std::string> set = {"data.num_workers=" + workers, "data.persistent_workers=false"};
    const int64_t limit = least_limit(plan("spike.toml", set)) * 11 / 10;
    set.push_back(set_limit(limit));
    Program program(planned_words("spike.toml", set, out), place());
    const std::string trainer = std::to_string(program.trainer());
    ASSERT_TRUE(eventually([&] { return program.ended() || has_saved(out); }));
    const std::string status = proc_file(trainer, "status"), limits = proc_file(trainer, "limits");
    memory_of(program.wait(), out);
    ASSERT_FALSE(HasFailure());
    const std::string mapped = line_of(status, "VmData:");
    ASSERT_NE(mapped, "") << "the run ended before it could be looked at";
    EXPECT_GT(std::stoll(mapped.substr(std::string("VmData:").size())) * 1024, limit) << "else this shows nothing";
    EXPECT_EQ(line_of(limits, "Max data size"), line_of(proc_file("self", "limits"), "Max data size"));
  }
}

// Evaluation's batch comes beside the one that training waits with.
TEST_F(Recordings, ValidationFitsWhereThePlanHadLittleToSpare) {
  make_emg();
  const Json planned = plan("emg.toml", {"data.num_workers=0"});
  const int64_t above_peak = planned.at("predicted_peak_bytes").get<int64_t>() * 102 / 100;
  const int64_t above_least = least_limit(planned) * 102 / 100;
  for (const int64_t limit : {above_peak, above_least}) {
    for (const std::string seed : {"1", "2", "3"}) {
      const std::string out = std::to_string(limit) + "-" + seed;
      memory_of_run("emg.toml", {"data.num_workers=0", "experiment.seed=" + seed, set_limit(limit)}, out);
      EXPECT_EQ(read_json(run_folder(out) / "summary.json").at("steps"), 16) << out;
    }
  }
}

// At most 2 % too low, at most 15 % too high.
TEST_F(Recordings, APlanKnowsWhatReadersHold) {
  make_emg();
  write_spike();
  for (const std::string file : {"emg.toml", "gzip.toml", "spike.toml"}) {
    for (const std::string workers : {"0", "1", "2"}) {
      const std::string out = file + "-" + workers;
      const Json memory = memory_of_run(file, {"data.num_workers=" + workers, "memory.limit=off"}, out);
      ASSERT_FALSE(HasFailure());
      const auto predicted = memory.at("predicted_peak_bytes").get<double>();
      const auto measured = memory.at("measured_peak_bytes").get<double>();
      EXPECT_GE(predicted, 0.98 * measured) << out;
      EXPECT_LE(predicted, 1.15 * measured) << out;
    }
  }
}

// Slots that nobody has written to yet are not taken off what the probe holds.
TEST_F(Recordings, ReadersHideNoActivationsFromAPlan) {
  make_emg();
  for (const std::string workers : {"0", "1", "2"}) {
    const Json planned = plan("emg.toml", {"data.num_workers=" + workers});
    const int64_t one = row(planned, 1).at("work_bytes"), sixteen = row(planned, 16).at("work_bytes"),
                  all = row(planned, 128).at("work_bytes");
    EXPECT_GT(one, planned.at("base_bytes").get<int64_t>()) << workers;
    EXPECT_GT(sixteen, one + 2 * mib) << workers;
    EXPECT_GT(all, sixteen + 20 * mib) << workers;
  }
}

TEST_F(Recordings, CompressedDataRunsALittleAboveItsLeast) {
  make_emg();
  const std::string readers = "data.num_workers=2";
  const int64_t least = least_limit(plan("gzip.toml", {readers}));
  for (const int64_t percent : {102, 110, 114, 120})
    memory_of_run("gzip.toml", {readers, set_limit(least * percent / 100)}, std::to_string(percent));
}

// Batches read ahead and decoded chunks make room for the micro-batch of the plan, which stays.
TEST_F(Recordings, WhatOnlyBuysSpeedGoesBeforeTheMicroBatch) {
  make_emg();
  const std::string readers = "data.num_workers=2";
  const Json planned = plan("gzip.toml", {readers});
  const int64_t peak = row(planned, 128).at("predicted_peak_bytes");
  const int64_t whole = limit_for(row(planned, 128).at("work_bytes")) + 2 * mib, less = peak * 6 / 10;
  ASSERT_LT(whole, peak - 40 * mib) << "else nothing had to go";
  ASSERT_LT(less, whole);
  memory_of_run("gzip.toml", {readers, "memory.limit=off"}, "free");
  for (const int64_t limit : {whole, less}) {
    const Json chosen = plan("gzip.toml", {readers, set_limit(limit)}).at("as_written").at("micro_batch");
    EXPECT_GE(chosen.get<int64_t>(), limit == whole ? 128 : 32);
    const std::string out = std::to_string(limit);
    const Json memory = memory_of_run("gzip.toml", {readers, set_limit(limit)}, out);
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(memory.at("retries").at("train").at("halved"), 0) << out << memory.dump(2);
    EXPECT_EQ(memory.at("retries").at("train").at("micro_batch"), chosen) << out << memory.dump(2);
  }
  EXPECT_TRUE(weights(std::to_string(whole)) == weights("free")) << "at one micro-batch a limit changes no bit";
}

}  // namespace
}  // namespace headroom
