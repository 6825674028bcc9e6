#include "python_trial.hpp"

#include <cstdlib>

namespace headroom {

namespace fs = std::filesystem;

void PythonTrial::SetUp() {
  if (std::getenv("HEADROOM_TEST_PYTHON") == nullptr)
    GTEST_SKIP() << "HEADROOM_TEST_PYTHON names no Python (a program or an environment) with the torch of this build";
  TrialRun::SetUp();
}

void PythonTrial::write_trial(const std::string& file, const std::string& options) const {
  write_text(folder_ / "trial.toml", R"([experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1

[model]
plugin = "python"

[model.options]
file = ")" + file + R"("
inputs = ["x"]
target = "y"
python = ")" + std::getenv("HEADROOM_TEST_PYTHON") +
                                         "\"\n" + options + R"(
[data]
source = ")" HEADROOM_BUILD_DIR R"(/examples/toy_source.so"
num_workers = 1
split = { train = 0.75, val = 0.25, test = 0.0, seed = 1 }

[data.options]
samples = 160

[train]
epochs = 3
batch_size = 8
clip_norm = 1.0
optimizer = { name = "adamw", lr = 0.01, weight_decay = 0.01 }

[checkpoint]
every_steps = 5
)");
}

void PythonTrial::expect_bit_equal_after_kill(const std::vector<std::string>& set) const {
  const Finished whole = run(set, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_NO_FATAL_FAILURE(run_killed_and_resumed(set, "killed", "PAUSE="));
  EXPECT_TRUE(weights("killed") == weights("whole"));
}

}  // namespace headroom
