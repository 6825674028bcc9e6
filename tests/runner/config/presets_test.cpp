// The presets of experiments/emg with the values their users gave.
#include <filesystem>
#include <gtest/gtest.h>

#include "config/experiment.hpp"
#include "config/rescue.hpp"

namespace headroom {

namespace {

struct Preset {
  std::string name;
  int64_t batch_size, accumulation;
  int num_workers;
  bool persistent_workers;
  int prefetch_factor;
  bool pin_memory;
  int64_t max_samples_for_normalize, chunk_cache_mib;
  int64_t stages, hidden_size, layers, stride;
};

// Where the users gave no value (quick_demo's samples and chunk cache) the defaults apply.
const Preset presets[] = {
    {"default", 64, 1, 4, true, 2, true, 10000, 64, 2, 128, 2, 1},
    {"low_memory", 16, 4, 2, true, 1, false, 5000, 32, 2, 128, 2, 2},
    {"quick_demo", 32, 1, 2, false, 2, true, DataSection{}.max_samples_for_normalize,
     DataSection{}.chunk_cache_size_bytes >> 20, 1, 64, 1, 1},
    {"high_performance", 128, 1, 8, true, 4, true, 20000, 128, 3, 256, 3, 1},
};

class Presets : public testing::TestWithParam<Preset> {
 protected:
  Experiment experiment_ = load_experiment(HEADROOM_SOURCE_DIR "/experiments/emg/" + GetParam().name + ".toml");
};

TEST_P(Presets, HaveTheirUsersValues) {
  const Preset& p = GetParam();
  const Experiment& e = experiment_;
  EXPECT_EQ(e.train.batch_size, p.batch_size);
  EXPECT_EQ(e.train.gradient_accumulation_steps, p.accumulation);
  EXPECT_EQ(e.data.num_workers, p.num_workers);
  EXPECT_EQ(e.data.persistent_workers, p.persistent_workers);
  EXPECT_EQ(e.data.prefetch_factor, p.prefetch_factor);
  EXPECT_EQ(e.data.pin_memory, p.pin_memory);
  EXPECT_EQ(e.data.max_samples_for_normalize, p.max_samples_for_normalize);
  EXPECT_EQ(e.data.chunk_cache_size_bytes, p.chunk_cache_mib << 20);
  EXPECT_EQ(e.data_options["stride"].value<int64_t>(), p.stride);
  EXPECT_EQ(static_cast<int64_t>(e.model_options["tds_stages"].as_array()->size()), p.stages);
  EXPECT_EQ(e.model_options["decoder_hidden_size"].value<int64_t>(), p.hidden_size);
  EXPECT_EQ(e.model_options["decoder_num_layers"].value<int64_t>(), p.layers);
}

TEST_P(Presets, ShareTheRest) {
  const Experiment& e = experiment_;
  EXPECT_EQ(e.model_plugin, "tds_lstm");
  EXPECT_EQ(e.data.source, "emg_hdf5");
  EXPECT_EQ(e.data_options["window_size"].value<int64_t>(), 500);
  EXPECT_EQ(e.train.optimizer.name, "adamw");
  EXPECT_EQ(e.train.optimizer.lr, 5e-4);
  EXPECT_EQ(e.train.optimizer.weight_decay, 0.01);
  EXPECT_EQ(e.train.schedule.name, "cosine");
  EXPECT_EQ(e.train.clip_norm, 1.0);
  EXPECT_EQ(e.train.early_stop->patience, 20);
  EXPECT_EQ(e.train.log_every, 50);
  EXPECT_EQ(e.memory.empty_cache_every, 100);
  EXPECT_EQ(e.metrics.mode, "online");
  const bool demo = GetParam().name == "quick_demo";
  EXPECT_EQ(e.train.epochs, demo ? 10 : 100);
  EXPECT_EQ(e.train.schedule.warmup_epochs, demo ? 1 : 5);
}

// The ladder its users climbed down by hand. What a rung says of the mathematics was checked when the file was read.
TEST(RescuePreset, IsTheUsersLadder) {
  const Experiment e = load_experiment(HEADROOM_SOURCE_DIR "/experiments/emg/rescue.toml");
  std::vector<std::pair<std::string, bool>> rungs;
  for (const RescueRung& rung : e.rescue->rungs) rungs.emplace_back(rung_text(rung), rung.keeps_mathematics);
  const std::vector<std::pair<std::string, bool>> theirs = {
      {"train.batch_size = 8, train.gradient_accumulation_steps = 8", true},
      {"data.num_workers = 0", true},
      {"data.options.stride = 4", false},
      {"model.options.decoder_hidden_size = 64", false},
      {"data.options.window_size = 400", false},
      {"experiment.device = \"cpu\"", true}};
  EXPECT_EQ(rungs, theirs);
  EXPECT_EQ(e.train.batch_size * e.train.gradient_accumulation_steps, 64);
}

// ACT as its users run it; 50 samples of an episode an epoch stand for 50 epochs of the original.
TEST(ActPresets, HaveTheirUsersValues) {
  const auto load = [](const std::string& name) {
    return load_experiment(HEADROOM_SOURCE_DIR "/experiments/act_dual_arm/" + name + ".toml");
  };
  for (const char* name : {"minimal", "train_reduced", "ladder"}) {
    const Experiment e = load(name);
    EXPECT_EQ(e.model_options["chunk_size"].value<int64_t>(), 20);
    EXPECT_EQ(e.model_options["kl_weight"].value<double>(), 10.0);
    EXPECT_EQ(e.model_options["hidden_dim"].value<int64_t>(), 512);
    EXPECT_EQ(e.model_options["dim_feedforward"].value<int64_t>(), 3200);
    EXPECT_EQ(e.model_options["lr_backbone"].value<double>(), 1e-5);
    EXPECT_EQ(e.data_options["train_ratio"].value<double>(), 0.9);
    EXPECT_EQ(e.data.num_workers, 0);
    EXPECT_FALSE(e.data.pin_memory);
    EXPECT_EQ(e.train.optimizer.name, "adamw");
    EXPECT_EQ(e.train.optimizer.lr, 1e-5);
    EXPECT_EQ(e.train.optimizer.weight_decay, 1e-4);
    EXPECT_EQ(e.train.batch_size, 2);
    EXPECT_EQ(e.experiment.seed, 0u);
    EXPECT_EQ(e.memory.empty_cache_every, 100);
    EXPECT_EQ(e.memory.empty_cache_every_eval, 50);
  }
  const Experiment reduced = load("train_reduced");
  EXPECT_EQ(reduced.train.gradient_accumulation_steps, 4);
  EXPECT_EQ(reduced.train.epochs * *reduced.data_options["samples_per_episode"].value<int64_t>(), 2000);
}

// common.toml is what the presets extend: it has no name.
TEST(Experiments, AllLoad) {
  size_t loaded = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(HEADROOM_SOURCE_DIR "/experiments")) {
    if (entry.path().extension() != ".toml" || entry.path().filename() == "common.toml") continue;
    EXPECT_NO_THROW(load_experiment(entry.path())) << entry.path();
    ++loaded;
  }
  EXPECT_GE(loaded, 4u);
}

INSTANTIATE_TEST_SUITE_P(Emg, Presets, testing::ValuesIn(presets), [](const auto& test) { return test.param.name; });

}  // namespace

}  // namespace headroom
