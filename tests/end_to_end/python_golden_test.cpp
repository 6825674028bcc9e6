// The nn.Modules of bench/peers in the runner, with the golden numbers of the references: a run has a golden file's
// weights and batch, and a script of python_golden/ holds what it leaves against the file. Some files live in
// tests/golden; the others are looked for in ../shared/golden.
#include <optional>
#include <ostream>
#include <sys/wait.h>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct Golden {
  std::string name, script;
  std::vector<std::string> files;              // as the script takes them
  std::string module_args, rows_args, inputs;  // $0 and $1: the files
  std::string train;
  friend std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.name; }
};

// Of which what is subtracted from the weights is the gradient.
const char* const one_step = "batch_size = 8\nepochs = 1\noptimizer = { name = \"sgd\", lr = 1.0, momentum = 0.0 }\n";

const Golden tds_position = {"TdsLstmOfPositions",
                             "tds_golden.py",
                             {"tds_lstm/small_track_pos_lstm64_T2790"},
                             "golden = \"$0\", velocity = false",
                             "golden = \"$0\"",
                             R"(["emg", "joint_angles", "valid"])",
                             one_step};
const Golden tds_velocity = {"TdsLstmOfVelocitiesWithAMask",
                             "tds_golden.py",
                             {"tds_lstm/small_track_vel_lstm64_masked_T2790"},
                             "golden = \"$0\", velocity = true",
                             "golden = \"$0\"",
                             R"(["emg", "joint_angles", "valid"])",
                             one_step};
const Golden act = {"ActInFiveStepsOfAdamW",
                    "act_golden.py",
                    {"act_policy/a_small_1cam_narrow", "act_policy/g_adamw_5steps"},
                    "start = \"$0\"",
                    "start = \"$0\", steps = \"$1\"",
                    R"(["image", "qpos", "action", "is_pad", "eps"])",
                    "batch_size = 2\nepochs = 1\noptimizer = { name = \"adamw\", lr = 1e-3, weight_decay = 1e-2 }\n"};
const Golden vrt = {"Vrt",         "vrt_golden.py", {"spike_vrt/a_vrt_tiny"}, "golden = \"$0\"", "golden = \"$0\"",
                    R"(["blur"])", one_step};

std::optional<fs::path> golden_file(const std::string& name) {
  const fs::path source(HEADROOM_SOURCE_DIR);
  for (const fs::path& folder : {source / "tests/golden", source.parent_path() / "shared/golden"}) {
    if (fs::path file = folder / (name + ".safetensors"); fs::exists(file)) return file;
  }
  return std::nullopt;
}

class GoldenNumbers : public TrialRun, public testing::WithParamInterface<Golden> {
 protected:
  static const char* python() { return std::getenv("HEADROOM_TEST_PYTHON"); }
  static fs::path script() {
    return fs::path(HEADROOM_SOURCE_DIR "/tests/end_to_end/python_golden") / GetParam().script;
  }
  std::string named(std::string arguments) const {
    for (size_t i = 0; i < files_.size(); ++i) {
      const std::string mark = "$" + std::to_string(i);
      if (const size_t place = arguments.find(mark); place != std::string::npos)
        arguments.replace(place, mark.size(), files_[i].string());
    }
    return arguments;
  }
  void SetUp() override {
    if (python() == nullptr)
      GTEST_SKIP() << "HEADROOM_TEST_PYTHON names no Python with the torch of this build, and h5py";
    for (const std::string& name : GetParam().files) {
      const auto file = golden_file(name);
      if (!file) GTEST_SKIP() << name << " is in ../shared, which is not beside this source tree";
      files_.push_back(*file);
    }
    TrialRun::SetUp();
    const std::string place = "python = \"" + std::string(python()) + "\"\nfile = \"" + script().string() + "\"\n";
    write_text(folder_ / "trial.toml",
               "[experiment]\nname = \"trial\"\ndevice = \"cpu\"\n[model]\nplugin = \"python\"\n[model.options]\n" +
                   place + "class = \"net\"\nargs = { " + named(GetParam().module_args) + " }\ninputs = " +
                   GetParam().inputs + "\nloss = \"loss\"\n[data]\nsource = \"python\"\nshuffle = \"sequential\"\n" +
                   "split = { train = 1.0, val = 0.0, test = 0.0 }\n[data.options]\n" + place +
                   "class = \"rows\"\nargs = { " + named(GetParam().rows_args) + " }\n[train]\nprecision = \"fp64\"\n" +
                   "schedule = { name = \"constant\", warmup_epochs = 0 }\n" + GetParam().train);
  }

  std::vector<fs::path> files_;
};

TEST_P(GoldenNumbers, AreThoseOfARun) {
  for (const char* micro_batch : {"2", "1"}) {
    const Finished end = run({std::string("train.micro_batch=") + micro_batch}, micro_batch);
    ASSERT_EQ(end.exit_code, 0) << end.err;
    std::string command = python() + std::string("/bin/python ") + script().string();
    for (const fs::path& file : files_) command += " " + file.string();
    command += " " + run_folder(micro_batch).string();
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0) << "in micro-batches of " << micro_batch;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenNumbers, testing::Values(tds_position, tds_velocity, act, vrt),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace headroom
