// Runs of the real program in real cgroups, judged by the kernel: it never has to kill one, whatever the limit.
//
// HEADROOM_CAMPAIGN_RUNS (100 unless set) says how many; HEADROOM_CAMPAIGN_SEED repeats a campaign.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "in_cgroup.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

class KernelCampaign : public InCgroup {
 protected:
  struct Setting {
    std::string file, precision;
    int64_t batch, accumulation, workers;
    bool operator<(const Setting& other) const {
      return std::tie(file, precision, batch, workers) <
             std::tie(other.file, other.precision, other.batch, other.workers);
    }
  };

  void SetUp() override {
    InCgroup::SetUp();
    if (IsSkipped()) return;
    write_text(folder_ / "linear.toml", R"([experiment]
name = "trial"
device = "cpu"
[model]
plugin = "linear_model"
[model.options]
dropout = 0.1
[data]
source = "toy_source"
max_samples_for_normalize = 64
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 16000
inputs = 1000
)");
    write_text(folder_ / "tds_lstm.toml", "extends = \"" HEADROOM_SOURCE_DIR
                                          "/experiments/emg/quick_demo.toml\""
                                          R"(
[experiment]
name = "trial"
device = "cpu"
[data]
max_samples_for_normalize = 64
[data.options]
path = "data"
stride = 50
[data.synth]
sessions = 6
seconds = 5.0
)");
    const Finished made = headroom({"data", "synth", "tds_lstm.toml"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  static Setting draw(std::mt19937_64& random) {
    const auto one_of = [&](auto choices) { return *(choices.begin() + random() % choices.size()); };
    const bool linear = random() % 2 == 0;
    using Numbers = std::initializer_list<int64_t>;
    return {.file = linear ? "linear.toml" : "tds_lstm.toml",
            .precision = one_of(std::initializer_list<std::string>{"fp32", "bf16", "fp64"}),
            .batch = linear ? one_of(Numbers{512, 2048, 8192}) : one_of(Numbers{8, 32, 128}),
            .accumulation = one_of(Numbers{1, 2, 3}),
            .workers = one_of(Numbers{0, 2})};
  }

  // Three windows, an evaluation, two checkpoints.
  std::vector<std::string> words_of(const Setting& setting, const std::string& limit, bool plan) const {
    std::vector<std::string> words = {"run",  setting.file,   "--out",
                                      "runs", "--plugin-dir", HEADROOM_BUILD_DIR "/examples"};
    if (!plan) words.emplace_back("--no-plan");
    for (const std::string& word : {"memory.limit=" + limit, "train.precision=" + setting.precision,
                                    "train.batch_size=" + std::to_string(setting.batch),
                                    "train.gradient_accumulation_steps=" + std::to_string(setting.accumulation),
                                    "data.num_workers=" + std::to_string(setting.workers),
                                    std::string("train.max_steps=3"), std::string("checkpoint.every_steps=2")}) {
      words.insert(words.end(), {"--set", word});
    }
    return words;
  }

  // Of a run that nothing holds, once for each setting.
  int64_t unlimited_peak(const Setting& setting) {
    if (const auto found = peaks_.find(setting); found != peaks_.end()) return found->second;
    const Finished free = headroom(words_of(setting, "off", /*plan=*/false));
    EXPECT_EQ(free.exit_code, 0) << free.err;
    const int64_t peak = read_json(run_folder() / "summary.json").at("memory").at("measured_peak_bytes");
    fs::remove_all(folder_ / "runs");
    return peaks_[setting] = peak;
  }

  std::map<Setting, int64_t> peaks_;
};

TEST_F(KernelCampaign, TheKernelNeverKills) {
  const int64_t runs = number_from("HEADROOM_CAMPAIGN_RUNS", 100);
  const auto seed = static_cast<uint64_t>(number_from("HEADROOM_CAMPAIGN_SEED", std::random_device{}()));
  std::printf("%lld runs, HEADROOM_CAMPAIGN_SEED=%llu\n", static_cast<long long>(runs),
              static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::map<int, int> ends;
  int64_t killed = 0;
  for (int64_t i = 0; i < runs; ++i) {
    const Setting setting = draw(random);
    const double share = 0.2 + 0.8 * static_cast<double>(random() >> 11) / static_cast<double>(uint64_t{1} << 53);
    const bool plan = random() % 3 == 0, told = random() % 2 == 0;
    const int64_t peak = unlimited_peak(setting);
    if (HasFailure()) return;
    const auto limit = static_cast<int64_t>(share * static_cast<double>(peak));
    const KernelCgroup cgroup(limit);
    ASSERT_EQ(cgroup.why_not(), "");
    const auto words = words_of(setting, told ? std::to_string(limit) : "auto", plan);
    const Finished finished = headroom_program(words, inside(cgroup));
    ++ends[finished.exit_code];
    killed += cgroup.oom_kills();
    const bool well = finished.exit_code == 0 || finished.exit_code == 5 || finished.exit_code == 75;
    std::printf("%3lld: %-13s %s %4lld x %lld, %lld workers, %3.0f %% of %4lld MiB, %s%s: exit %d, %lld killed\n",
                static_cast<long long>(i), setting.file.c_str(), setting.precision.c_str(),
                static_cast<long long>(setting.batch), static_cast<long long>(setting.accumulation),
                static_cast<long long>(setting.workers), 100 * share, static_cast<long long>(peak / mib),
                told ? "told" : "auto", plan ? ", planned" : "", finished.exit_code,
                static_cast<long long>(cgroup.oom_kills()));
    std::fflush(stdout);
    EXPECT_TRUE(well && cgroup.oom_kills() == 0) << "run " << i << " ended with " << finished.exit_code << ":\n"
                                                 << finished.err;
    fs::remove_all(folder_ / "runs");
  }
  for (const auto& [exit_code, count] : ends) std::printf("exit %d: %d\n", exit_code, count);
  EXPECT_EQ(killed, 0);
}

using KernelStart = InCgroup;

// Where not even the libraries fit, they are refused memory at some point before main(), each in its own way.
TEST_F(KernelStart, LittleIsASentenceWhereverTheLibrariesStumble) {
  for (int64_t limit = 6 * mib; limit <= 66 * mib; limit += mib) {
    const KernelCgroup cgroup(limit);
    ASSERT_EQ(cgroup.why_not(), "");
    const Finished finished = headroom_program(run_words({"train.epochs=1"}), inside(cgroup));
    EXPECT_EQ(cgroup.oom_kills(), 0) << limit / mib << " MiB";
    if (finished.exit_code == 0) break;
    EXPECT_EQ(finished.exit_code, 5) << limit / mib << " MiB: " << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

using KernelRescue = InCgroup;

// Without a limit of its own nothing but the kernel stops it: from step 20 on, more than two samples take all there is.
TEST_F(KernelRescue, AKillForLackOfMemoryTakesARung) {
  write_text(folder_ / "trial.toml",
             read_text(folder_ / "trial.toml") +
                 "\n[rescue]\nrungs = [{ \"train.batch_size\" = 2, \"train.gradient_accumulation_steps\" = 4 }]\n");
  const KernelCgroup cgroup(768 * mib);
  ASSERT_EQ(cgroup.why_not(), "");
  StartPlace place = inside(cgroup);
  place.environment.emplace_back("HEADROOM_TEST_FAULT=hoard:20:2");
  const Finished finished = headroom_program(run_words({"memory.limit=off", "checkpoint.every_steps=5"}), place);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(cgroup.oom_kills(), 1);
  EXPECT_NE(finished.err.find("[rescue] it was killed for lack of memory: rung 1 of 1, "), std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("; this keeps the mathematics; it goes on from the last checkpoint\n"), std::string::npos)
      << finished.err;
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 45);
}

using KernelMonitor = InCgroup;

// A run that takes little among others that take much: between 90 %, where it warns, and 95 %, where memory is short.
TEST_F(KernelMonitor, AboveNinetyPercentTheMemoryLineNamesTheKnob) {
  const std::vector<std::string> set = {"memory.limit=off", "memory.log_every=5", "train.epochs=1"};
  const std::string warning = "memory is above 90 %: of this run's share the ", knob = "; the knob for them is ";
  const int64_t limit = 4096 * mib;
  const KernelCgroup cgroup(limit);
  const Finished alone = headroom_program(run_words(set, "alone"), inside(cgroup));
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.err.find(warning), std::string::npos) << alone.err;
  int64_t process_bytes = 0;
  for (const auto& line : read_json_lines(run_folder("alone") / "memory.jsonl"))
    process_bytes = std::max(process_bytes, line.at("process_bytes").get<int64_t>());

  const int64_t others = limit * 37 / 40 - process_bytes;
  const Neighbour neighbour(cgroup, others);
  ASSERT_TRUE(eventually([&] { return cgroup.used_bytes() > others - mib; }));
  const Finished beside = headroom_program(run_words(set, "beside"), inside(cgroup));
  ASSERT_EQ(beside.exit_code, 0) << beside.err;
  const size_t found = beside.err.find(warning);
  ASSERT_NE(found, std::string::npos) << beside.err;
  EXPECT_LT(beside.err.find(knob, found), beside.err.find('\n', found)) << beside.err;
}

using KernelPressure = InCgroup;

// Others take what the run counted on: it saves, ends with 75, and goes on later as if nothing had been.
TEST_F(KernelPressure, SavesAndLeavesAndGoesOnBitEqual) {
  const std::vector<std::string> set = {"model.options.hidden=12000",
                                        "model.options.remember=false",
                                        "data.num_workers=0",
                                        "train.batch_size=48",
                                        "train.micro_batch=24",
                                        "train.gradient_accumulation_steps=1",
                                        "train.epochs=60",
                                        "eval.every_epochs=60"};
  ASSERT_EQ(run(set, "undisturbed").exit_code, 0);
  const int64_t peak = read_json(run_folder("undisturbed") / "summary.json").at("memory").at("measured_peak_bytes");

  const int64_t limit = 4 * peak, least = limit / 20;  // below which memory is short
  const KernelCgroup cgroup(limit);
  Program program(run_words(set, "pressed"), inside(cgroup));
  ASSERT_TRUE(eventually([&] { return program.ended() || has_saved("pressed"); }));
  const Neighbour neighbour(cgroup, limit - peak - least * 2 / 3);
  const Finished finished = program.wait();
  EXPECT_EQ(cgroup.oom_kills(), 0);
  ASSERT_EQ(finished.exit_code, 75) << finished.err;
  EXPECT_NE(finished.err.find("memory is short: a checkpoint, and the end of this process"), std::string::npos)
      << finished.err;
  EXPECT_EQ(read_json(run_folder("pressed") / "summary.json").at("state"), "resumable");
  const Finished resumed =
      headroom({"run", "--resume", run_folder("pressed").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  for (const char* file : {"checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors"}) {
    EXPECT_TRUE(read_text(run_folder("pressed") / file) == read_text(run_folder("undisturbed") / file)) << file;
  }
}

}  // namespace
}  // namespace headroom
