// The nn.Modules of bench/peers in the runner: dropout by the keys of samples, so that a window is the same however it
// is divided; and the same numbers as the C++ plugin of the network.
#include <ostream>

#include "ranks_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct Peer {
  std::string name, file, model, data;  // [model.options] beside file and python, and the sections behind it
  friend std::ostream& operator<<(std::ostream& out, const Peer& peer) { return out << peer.name; }
};

const char* const emg = R"([data]
source = "emg_hdf5"
max_samples_for_normalize = 16
[data.options]
path = "data"
stride = 400
[data.synth]
sessions = 4
seconds = 2.0
[train]
batch_size = 8
epochs = 4
max_steps = 4
optimizer = { name = "adamw", lr = 5e-4, weight_decay = 0.01 }
)";
const Peer tds = {"tds", "tds_lstm_module.py", R"(class = "net"
inputs = ["emg", "joint_angles", "valid"]
loss = "mse_mae"
)",
                  emg};
const Peer act = {"act", "act_policy_module.py", R"(class = "net"
args = { chunk = 8, tuned = true }
inputs = ["image", "qpos", "action", "is_pad"]
loss = "loss"
)",
                  R"([data]
source = "dual_arm_hdf5"
[data.options]
path = "data"
samples_per_episode = 4
[data.synth]
episodes = 5
steps = 20
cameras = 1
height = 48
width = 64
[train]
batch_size = 8
epochs = 4
max_steps = 2
optimizer = { name = "adamw", lr = 1e-5, weight_decay = 1e-4 }
)"};
const Peer vrt = {"vrt", "spike_vrt_module.py", R"(class = "net"
args = { embed = 8, depth = 1, heads = 2, deformable_groups = 2, drop_path = 0.3, window = [2, 8, 8] }
inputs = ["blur"]
loss = "loss"
)",
                  R"([data]
source = "spike_hdf5"
[data.options]
path = "data"
clip_length = 3
crop_size = 64
use_voxel = false
[data.synth]
sequences = 8
frames = 4
height = 64
width = 64
[train]
batch_size = 8
epochs = 4
max_steps = 1
optimizer = { name = "adamw", lr = 1e-4, weight_decay = 1e-4 }
)"};

class PeerModules : public TrialRun, public testing::WithParamInterface<Peer> {
 protected:
  static const char* python() { return std::getenv("HEADROOM_TEST_PYTHON"); }
  void SetUp() override {
    if (python() == nullptr)
      GTEST_SKIP() << "HEADROOM_TEST_PYTHON names no Python with the torch of this build, and h5py";
    TrialRun::SetUp();
  }
  void write(const Peer& peer) const {
    write_text(
        folder_ / "trial.toml",
        "[experiment]\nname = \"trial\"\ndevice = \"cpu\"\n[model]\nplugin = \"python\"\n[model.options]\npython = \"" +
            std::string(python()) + "\"\nfile = \"" HEADROOM_SOURCE_DIR "/bench/peers/" + peer.file + "\"\n" +
            peer.model + peer.data);
  }
  fs::path finished(std::vector<std::string> set, const std::string& out) const {
    set.insert(set.end(), {"train.precision=fp64", "train.log_every=1"});
    std::vector<std::string> words = {"run", "trial.toml", "--no-plan", "--out", out};
    for (const std::string& one : set) words.insert(words.end(), {"--set", one});
    const Finished end = headroom(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return run_folder(out);
  }
};

TEST_P(PeerModules, AWindowIsTheSameHoweverItIsDivided) {
  write(GetParam());
  const Tensors whole = floating_weights_of(finished({"train.micro_batch=8"}, "8"));
  ASSERT_GT(whole.size(), 10u);
  for (const char* micro_batch : {"1", "3"}) {
    const Tensors divided =
        floating_weights_of(finished({std::string("train.micro_batch=") + micro_batch}, micro_batch));
    for (const auto& [name, values] : divided)
      EXPECT_LE(largest(difference(values, whole.at(name))), 1e-8 * largest(whole.at(name)))
          << name << " in micro-batches of " << micro_batch;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PeerModules, testing::Values(tds, act, vrt),
                         [](const auto& test) { return test.param.name; });

// From the same weights, whose names both have.
TEST_F(PeerModules, TheTdsLstmHasTheNumbersOfTheCppPlugin) {
  write_text(folder_ / "trial.toml", "extends = \"" HEADROOM_SOURCE_DIR "/experiments/emg/quick_demo.toml\"\n" +
                                         std::string("[experiment]\nname = \"trial\"\ndevice = \"cpu\"\n") + emg);
  const std::vector<std::string> plain = {"train.schedule={name=\"constant\",warmup_epochs=0}", "train.clip_norm=1.0"};
  std::vector<std::string> start = plain;
  start.insert(start.end(), {"train.max_steps=1", "train.optimizer={name=\"sgd\",lr=1e-30}"});
  const fs::path weights = finished(start, "start") / "checkpoints/last/model.safetensors";
  const std::string init = "init={from=\"" + weights.string() + "\"}";
  std::vector<std::string> set = plain;
  set.push_back(init);
  const fs::path native = finished(set, "native");
  write(tds);
  const fs::path module = finished(set, "module");
  const Tensors expected = floating_weights_of(native), found = floating_weights_of(module);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : found)
    EXPECT_LE(largest(difference(values, expected.at(name))), 1e-8 * largest(expected.at(name))) << name;
  const nlohmann::json metrics = read_json(native / "summary.json").at("metrics");
  const double loss = read_json(module / "summary.json").at("metrics").at("train/loss");
  EXPECT_NEAR(loss, metrics.at("train/loss"), 1e-9 * std::abs(loss));
}

}  // namespace
}  // namespace headroom
