// The main job in small: tds_lstm on emg_hdf5, from an experiment file, on data made to order and on two real
// recordings.
#include <csignal>

#include "small_network.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Emg : public TrialRun {
 protected:
  Finished run_text(const std::string& text, const std::string& out) {
    write_text(folder_ / "emg.toml", std::string(small_network) + text);
    return headroom({"run", "emg.toml", "--out", out});
  }
};

class RealRecording : public Emg, public testing::WithParamInterface<std::pair<std::string, int>> {};

TEST_P(RealRecording, TrainsWithNothingButAnExperimentFile) {
  const auto& [name, channels] = GetParam();
  const fs::path file = fs::path(HEADROOM_SOURCE_DIR) / "../shared/real/emg" / name;
  if (!fs::exists(file)) GTEST_SKIP() << "no " << file;
  const Finished finished = run_text(R"(
[data]
source = "emg_hdf5"
num_workers = 1
max_samples_for_normalize = 100
split = { train = 1.0, val = 0.0, test = 0.0 }
[data.options]
path = ")" + fs::canonical(file).string() +
                                         R"("
window_size = 250
stride = 25
[train]
max_steps = 6
batch_size = 8
log_every = 2
optimizer = { name = "adamw", lr = 5e-4, weight_decay = 0.01 }
)",
                                     "real");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto summary = read_json(run_folder("real") / "summary.json");
  EXPECT_EQ(summary.at("steps"), 6);
  EXPECT_EQ(summary.at("skipped_windows"), 0);
  EXPECT_TRUE(std::isfinite(summary.at("metrics").at("train/mae").get<double>()));
  const auto found = nlohmann::json::parse(headroom({"validate", "emg.toml", "--json"}).out);
  EXPECT_EQ(found.at("fields").at(0).at("shape"), (std::vector<int>{250, channels}));
  EXPECT_EQ(found.at("fields").at(1).at("shape"), (std::vector<int>{250, 5}));
}

INSTANTIATE_TEST_SUITE_P(Both, RealRecording,
                         testing::Values(std::pair<std::string, int>{"duque_1734923885_8ch_angles.hdf5", 8},
                                         std::pair<std::string, int>{"duque_1734156561_16ch_curl.hdf5", 16}),
                         [](const auto& file) { return "Channels" + std::to_string(file.param.second); });

// The promise of resume on the network people train: readers, jitter, two threads of LibTorch.
TEST_F(Emg, KilledInMidEpochAndResumedEndsBitEqual) {
  write_text(folder_ / "emg.toml", std::string(small_network) + R"(
[data]
source = "emg_hdf5"
num_workers = 2
max_samples_for_normalize = 100
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
path = "made"
window_size = 200
stride = 20
splits = "none"
[data.synth]
sessions = 4
seconds = 2.0
[train]
epochs = 3
batch_size = 8
clip_norm = 1.0
optimizer = { name = "adamw", lr = 1e-3, weight_decay = 0.01 }
schedule = { name = "cosine", warmup_epochs = 1 }
[checkpoint]
every_steps = 10
)");
  const auto words = [](const std::string& out) {
    return std::vector<std::string>{"run", "emg.toml", "--out", out, "--set", "experiment.threads=2"};
  };
  const Finished undisturbed = headroom(words("undisturbed"));
  ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;

  Program program(words("killed"), here());
  const pid_t trainer = program.trainer();
  ASSERT_TRUE(eventually([&] { return has_saved("killed") || program.ended(); }));
  kill(trainer, SIGKILL);
  ASSERT_EQ(program.wait().exit_code, 137) << "the run was over before it could be killed";
  const Finished resumed = headroom({"run", "--resume", run_folder("killed").string()});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  for (const char* file : {"model.safetensors", "state.safetensors"}) {
    const auto last = fs::path("checkpoints/last") / file;
    EXPECT_TRUE(read_text(run_folder("killed") / last) == read_text(run_folder("undisturbed") / last)) << file;
  }
  EXPECT_EQ(metrics_without_times(run_folder("killed")), metrics_without_times(run_folder("undisturbed")));
}

// Statistics measured before, standardised copies and cached samples: another way to the same bytes.
TEST_F(Emg, KeptStatisticsCopiesAndACacheGiveTheSameWeights) {
  const std::string text = std::string(small_network) + R"(
[data]
source = "emg_hdf5"
num_workers = 2
max_samples_for_normalize = 100
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
path = "made"
window_size = 200
stride = 20
jitter = false
splits = "none"
[data.synth]
sessions = 4
seconds = 2.0
[train]
epochs = 2
batch_size = 8
)";
  write_text(folder_ / "emg.toml", text);
  const StartPlace place = here({"XDG_CACHE_HOME=" + (folder_ / "cache").string()});
  const auto run_with = [&](const std::string& out, const std::vector<std::string>& set) {
    std::vector<std::string> words{"run", "emg.toml", "--no-plan", "--out", out};
    for (const std::string& key : set) words.insert(words.end(), {"--set", key});
    Finished finished = headroom_program(words, place);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.err;
  };
  EXPECT_NE(run_with("first", {}).find(" training samples, measured in "), std::string::npos);
  EXPECT_NE(run_with("copies", {"data.normalized_cache=true"}).find("normalised copies: 4 of 4 files written"),
            std::string::npos);
  const std::string again =
      run_with("again", {"data.normalized_cache=true", "data.cache_size=64 MiB", "data.num_workers=0"});
  EXPECT_NE(again.find("measured before on the same files"), std::string::npos) << again;
  EXPECT_NE(again.find("normalised copies: 4 files as they were left by an earlier run"), std::string::npos) << again;
  const auto cache = read_json(run_folder("again") / "summary.json").at("data").at("cache");
  EXPECT_EQ(cache.at("misses"), cache.at("items")) << "each sample is read once";
  EXPECT_GE(cache.at("hits"), cache.at("items")) << "all of the second epoch, and what was read ahead";
#if !defined(__SANITIZE_ADDRESS__)  // which keeps what was freed for a while
  EXPECT_EQ(again.find("leak: "), std::string::npos) << again;
#endif
  const auto weights = [&](const std::string& out) {
    return read_text(run_folder(out) / "checkpoints/last/model.safetensors");
  };
  EXPECT_TRUE(weights("copies") == weights("first"));
  EXPECT_TRUE(weights("again") == weights("first"));
  EXPECT_EQ(metrics_without_times(run_folder("again")), metrics_without_times(run_folder("first")));
  const Finished evaluated =
      headroom_program({"evaluate", run_folder("again").string(), "--split", "val", "--json"}, place);
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
}

}  // namespace
}  // namespace headroom
