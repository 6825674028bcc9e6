// The three models of the project in several processes: the run of one, with dropout, jitter and crops.
#include <ostream>

#include "ranks_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct ModelInRanks {
  std::string name, experiment;
  friend std::ostream& operator<<(std::ostream& out, const ModelInRanks& model) { return out << model.name; }
};

// In fp64, where sums in another order differ by rounding alone: 1e-16 of a term.
const ModelInRanks tds_lstm = {"tds_lstm", R"(/experiments/emg/quick_demo.toml"
[data.options]
path = "data"
stride = 100
[data.synth]
sessions = 6
seconds = 3.0
[train]
batch_size = 10
)"};
const ModelInRanks act_policy = {"act_policy", R"(/experiments/act_dual_arm/quick_demo.toml"
[model.options]
dropout = 0.1
[data.options]
path = "data"
samples_per_episode = 6
[data.synth]
episodes = 8
steps = 30
[train]
batch_size = 10
)"};
const ModelInRanks spike_vrt = {"spike_vrt", R"(/experiments/spike_vrt/quick_demo.toml"
[model.options]
drop_path_rate = 0.2
[data.options]
path = "data"
crop_size = 40
[data.synth]
sequences = 8
frames = 5
height = 48
width = 48
[eval]
every_epochs = 1
[train]
batch_size = 3
)"};

class ModelsInRanks : public TrialRun, public testing::WithParamInterface<ModelInRanks> {
 protected:
  fs::path finished(int processes) const {
    const std::string out = std::to_string(processes);
    const Finished end =
        headroom({"run", "trial.toml", "--no-plan", "--out", out, "--nproc", out, "--set", "train.precision=fp64",
                  "--set", "train.epochs=2", "--set", "experiment.name=trial", "--set", "experiment.device=cpu",
                  "--set", "experiment.threads=1", "--set", "data.max_samples_for_normalize=16"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return run_folder(out);
  }
};

TEST_P(ModelsInRanks, HaveTheWeightsAndMetricsOfOneAfterTwoEpochs) {
  write_text(folder_ / "trial.toml", "extends = \"" HEADROOM_SOURCE_DIR + GetParam().experiment);
  const fs::path alone = finished(1);
  const Tensors expected = floating_weights_of(alone);
  ASSERT_GT(expected.size(), 10u);
  const nlohmann::json summary = read_json(alone / "summary.json");
  for (const int processes : {2, 3, 4}) {
    const fs::path ours = finished(processes);
    const Tensors weights = floating_weights_of(ours);
    ASSERT_EQ(weights.size(), expected.size());
    for (const auto& [name, values] : weights)
      EXPECT_LE(largest(difference(values, expected.at(name))), 1e-8 * largest(expected.at(name)))
          << name << " of " << processes << " processes";
    const nlohmann::json metrics = read_json(ours / "summary.json").at("metrics");
    EXPECT_EQ(metrics.size(), summary.at("metrics").size());
    for (const auto& [name, value] : summary.at("metrics").items())
      EXPECT_NEAR(metrics.at(name), value, 1e-8 * std::abs(value.get<double>()))
          << name << " of " << processes << " processes";
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelsInRanks, testing::Values(tds_lstm, act_policy, spike_vrt),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace headroom
