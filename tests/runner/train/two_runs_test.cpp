// Different experiments at once in one process: each ends in the bits it ends in alone.
#include <fstream>
#include <future>
#include <iterator>

#include "../record/temporary_folder.hpp"
#include "data/services.hpp"
#include "plugins/host.hpp"
#include "plugins/torch_model.hpp"
#include "train/train.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct Ended {
  Exit exit = Exit::bug;
  std::string weights, metrics;
};

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TwoRuns : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    set_host_torch_tag(host_torch_tag());
    register_data_services();
  }

  // An example of the project, small: `words` are key=value.
  Ended run(const std::string& out, const std::string& example, std::vector<std::string> words) const {
    words.insert(words.end(), {"experiment.device=cpu", "experiment.threads=1", "experiment.name=run", "train.epochs=9",
                               "train.max_steps=24", "memory.limit=2 GB"});
    std::vector<Override> overrides;
    for (const std::string& word : words)
      overrides.push_back({word.substr(0, word.find('=')), word.substr(word.find('=') + 1)});
    TrainRequest request;
    request.experiment = load_experiment(fs::path(HEADROOM_SOURCE_DIR) / "experiments" / example, overrides);
    request.out = folder_ / out;
    request.plugin_dirs = {HEADROOM_PLUGIN_DIR};
    Ended ended;
    ended.exit = train(request);
    for (const auto& folder : fs::directory_iterator(folder_ / out / "run")) {
      ended.weights = bytes_of(folder.path() / "checkpoints/last/model.safetensors");
      ended.metrics = bytes_of(folder.path() / "metrics.csv");
    }
    return ended;
  }

  std::vector<std::function<Ended(const std::string& when)>> experiments() const {
    const std::string emg = "data.options.path=" + (folder_ / "emg").string();
    const std::vector<std::string> small = {"data.synth.sessions=6", "data.synth.seconds=3.0", "train.batch_size=4",
                                            emg};
    const auto with = [small](std::vector<std::string> words) {
      words.insert(words.end(), small.begin(), small.end());
      return words;
    };
    // The first two read the same files, one of them through normalised copies.
    return {[=, this](const std::string& when) {
              return run(when + "-copies", "quick_demo.toml",
                         with({"data.normalized_cache=true", "data.memory_map=true", "experiment.seed=1"}));
            },
            [=, this](const std::string& when) {
              return run(when + "-cached", "quick_demo.toml",
                         with({"data.cache_size=4 MB", "data.chunk_cache_size=100 KB", "experiment.seed=2",
                               "data.normalize=off"}));
            },
            [=, this](const std::string& when) {
              return run(when + "-act", "act_dual_arm/quick_demo.toml",
                         {"data.options.path=" + (folder_ / "act").string(), "data.synth.episodes=4",
                          "data.synth.steps=20", "train.batch_size=2", "data.options.samples_per_episode=4"});
            }};
  }
};

TEST_F(TwoRuns, EachIsTheSameAsAlone) {
  std::vector<Ended> alone;
  for (const auto& experiment : experiments()) {
    alone.push_back(experiment("alone"));
    ASSERT_EQ(alone.back().exit, Exit::ok);
    ASSERT_GT(alone.back().weights.size(), 1000u);
  }
  EXPECT_NE(alone[0].weights, alone[1].weights);
  std::vector<std::future<Ended>> together;
  for (const auto& experiment : experiments())
    together.push_back(std::async(std::launch::async, [experiment] { return experiment("together"); }));
  for (size_t i = 0; i < together.size(); ++i) {
    const Ended ended = together[i].get();
    EXPECT_EQ(ended.exit, Exit::ok);
    EXPECT_TRUE(ended.weights == alone[i].weights) << "experiment " << i;
    EXPECT_EQ(ended.metrics, alone[i].metrics);
  }
}

}  // namespace
}  // namespace headroom
