// A Setup of the trial plugins as a run would make it, from an experiment file and overrides.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdlib.h>
#include <string>
#include <vector>

#include "../record/temporary_folder.hpp"
#include "plugins/host.hpp"
#include "train/setup.hpp"

namespace headroom {

class TrialSetup {
 public:
  // `words` are key=value. `group`: the processes that share each window; NULL: this one alone.
  explicit TrialSetup(const std::vector<std::string>& words = {}, const std::shared_ptr<RankGroup>& group = nullptr) {
    set_host_torch_tag(host_torch_tag());
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    folder_ = pattern;
    std::ofstream(folder_ / "trial.toml") << R"(
[experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1
[model]
plugin = "trial_model"
[data]
source = "trial_source"
num_workers = 0
max_samples_for_normalize = 32
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 200
[train]
batch_size = 8
)";
    experiment_ = std::make_unique<Experiment>(load(words));
    data_ =
        std::make_unique<const RunData>(prepare_data(*experiment_, {HEADROOM_TEST_PLUGIN_DIR}, /*trains=*/true, group));
    setup_ = std::make_unique<const Setup>(*data_);
  }
  ~TrialSetup() {
    setup_.reset();
    data_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TrialSetup(const TrialSetup&) = delete;
  TrialSetup& operator=(const TrialSetup&) = delete;

  // The same file once more.
  Experiment load(const std::vector<std::string>& words) const {
    std::vector<Override> overrides;
    for (const std::string& word : words)
      overrides.push_back({word.substr(0, word.find('=')), word.substr(word.find('=') + 1)});
    return load_experiment(folder_ / "trial.toml", overrides);
  }

  const Setup& operator*() { return *setup_; }
  const Setup* operator->() { return setup_.get(); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<Experiment> experiment_;
  std::unique_ptr<const RunData> data_;
  std::unique_ptr<const Setup> setup_;
};

}  // namespace headroom
