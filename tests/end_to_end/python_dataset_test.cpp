// Datasets of a user's Python file in whole runs: data.source = "python" beside a C++ model. They need neither numpy
// nor torch; skipped where there is no python3.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// x: three numbers and some noise; y: what they come to. Sample 7 makes what trouble it is told to. Random numbers that
// are drawn here and there must not depend on which process reads what.
const std::string dataset_file = R"(import array
import os
import random
import signal
import time

import truth

READ = 0
if os.environ.get("PIDS"):
    open(os.path.join(os.environ["PIDS"], str(os.getpid())), "w").close()


def first_time(mark):
    if not mark or os.path.exists(mark):
        return False
    open(mark, "w").close()
    return True


class Points:
    def __init__(self, samples=160, noise=0.1):
        self.samples, self.noise = samples, noise

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        if index == 7:
            self.make_trouble()
        self.wait()
        own = random.Random(index)
        x = [own.uniform(-1, 1) for _ in range(3)]
        y = truth.of(x)
        for _ in range(random.randrange(3)):
            random.random()
        x = [value + random.gauss(0, self.noise) for value in x]
        if index == 7 and os.environ.get("SHORTER"):
            x = x[:2]
        return {"x": array.array("f", x), "y": array.array("f", [y])}

    def wait(self):
        global READ
        READ += 1
        time.sleep(float(os.environ.get("SLEEP", "0")))
        pause = os.environ.get("PAUSE")
        if pause and READ == 200:
            open(pause, "w").close()
            while os.path.exists(pause):
                time.sleep(0.01)

    def make_trouble(self):
        if first_time(os.environ.get("KILLED_ONCE")):
            os.kill(os.getpid(), signal.SIGKILL)
        if first_time(os.environ.get("HANGS_ONCE")):
            time.sleep(600)
        if os.environ.get("ENDS"):
            os._exit(3)
        if os.environ.get("RAISES"):
            raise ValueError("seven is not allowed")
        if os.environ.get("KILLED"):
            os.kill(os.getpid(), signal.SIGKILL)


class Words(Points):
    def __getitem__(self, index):
        return {"x": array.array("f", [1, 2, 3]), "y": "one"}


def pairs(samples):
    whole = Points(samples)
    return [(whole[i]["x"], 1.5) for i in range(samples)]


if os.environ.get("STARTS"):
    import subprocess

    started = subprocess.Popen(["sleep", "600"])
    open(os.path.join(os.environ["STARTS"], str(started.pid)), "w").close()
)";

std::string python() {
  for (const std::string place : {"/usr/bin/python3", "/usr/local/bin/python3"}) {
    if (fs::exists(place)) return place;
  }
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::exists(fs::path(folder) / "python3")) return folder + "/python3";
  }
  return "";
}

class PythonDataset : public TrialRun {
 protected:
  void SetUp() override {
    if (python().empty()) GTEST_SKIP() << "there is no python3 in /usr/bin or $PATH";
    TrialRun::SetUp();
    write_text(folder_ / "points.py", dataset_file);
    write_text(folder_ / "truth.py", "def of(x):\n    return x[0] - 2 * x[1] + 0.5\n");
    write_text(folder_ / "trial.toml", R"([experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1

[model]
plugin = ")" HEADROOM_BUILD_DIR R"(/examples/linear_model.so"

[data]
source = "python"
num_workers = 2
split = { train = 0.75, val = 0.25, test = 0.0, seed = 1 }

[data.options]
file = "points.py"
class = "Points"
python = ")" + python() + R"("

[train]
epochs = 3
batch_size = 8
optimizer = { name = "adamw", lr = 0.01, weight_decay = 0.01 }

[checkpoint]
every_steps = 5

[memory]
log_every = 5
)");
  }

  void expect_same(const std::string& out, const std::string& other) const {
    EXPECT_TRUE(weights(out) == weights(other)) << out;
    EXPECT_EQ(metrics_without_times(run_folder(out)), metrics_without_times(run_folder(other))) << out;
  }
  // How many processes the files in `folder` are named after, of which none is left.
  size_t gone_of(const std::string& folder) const {
    size_t processes = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) {
      const auto pid = static_cast<pid_t>(std::stol(entry.path().filename().string()));
      EXPECT_TRUE(eventually([&] { return kill(pid, 0) != 0; })) << "process " << pid << " is still there";
      ++processes;
    }
    return processes;
  }
  std::string identity(const std::string& out) const {
    return read_json(run_folder(out) / "summary.json").at("identity").get<std::string>();
  }
  std::string mark(const std::string& variable) const { return variable + "=" + (folder_ / variable).string(); }
};

void expect_says(const Finished& finished, const std::string& text) {
  EXPECT_NE(finished.err.find(text), std::string::npos) << finished.err;
}

TEST_F(PythonDataset, TrainsTheSameWithAnyNumberOfWorkers) {
  for (const std::string workers : {"0", "1", "4"}) {
    const Finished finished = run({"data.num_workers=" + workers}, workers);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
  }
  expect_same("1", "0");
  expect_same("4", "0");
  ASSERT_EQ(run({"experiment.seed=4"}, "seed").exit_code, 0);
  EXPECT_FALSE(weights("seed") == weights("0")) << "what it draws follows from the seed";
  ASSERT_EQ(run({"data.options.args.noise=0.0"}, "plain").exit_code, 0);
  EXPECT_FALSE(weights("plain") == weights("0")) << "args reach the class";
}

TEST_F(PythonDataset, KilledAndResumedItEndsBitEqualAndLeavesNoProcess) {
  ASSERT_EQ(run({"data.num_workers=1"}, "whole").exit_code, 0);
  fs::create_directory(folder_ / "pids");
  setenv("PIDS", (folder_ / "pids").c_str(), 1);
  run_killed_and_resumed({"data.num_workers=1"}, "killed", "PAUSE=");
  unsetenv("PIDS");
  ASSERT_FALSE(HasFatalFailure());
  expect_same("killed", "whole");
  EXPECT_GE(gone_of("pids"), 2u);
}

// Readers of training go on ahead while an evaluation's read.
TEST_F(PythonDataset, TrainingAndEvaluationShareTheWorkers) {
  for (const std::string workers : {"0", "2"}) {
    const std::string pids = "pids" + workers;
    fs::create_directory(folder_ / pids);
    const Finished finished =
        run_with({"data.num_workers=" + workers}, workers, {"PIDS=" + (folder_ / pids).string(), "SLEEP=0.01"});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(gone_of(pids), workers == "0" ? 1u : 2u);
  }
  expect_same("2", "0");
}

TEST_F(PythonDataset, WhatAWorkerHasStartedEndsWithIt) {
  fs::create_directory(folder_ / "started");
  const Finished finished = run_with({"train.epochs=1"}, "runs", {"STARTS=" + (folder_ / "started").string()});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_GE(gone_of("started"), 1u);
}

TEST_F(PythonDataset, AWorkerThatIsKilledOrHangsIsReplaced) {
  ASSERT_EQ(run({}, "whole").exit_code, 0);
  const Finished killed = run_with({}, "killed", {mark("KILLED_ONCE")});
  ASSERT_EQ(killed.exit_code, 0) << killed.err;
  expect_says(killed, "the worker process that read sample 7 of points.py was ended by SIGKILL");
  expect_says(killed, "another one reads it again");
  expect_same("killed", "whole");
  const Finished hung = run_with({"data.options.read_timeout_s=2.0"}, "hung", {mark("HANGS_ONCE")});
  ASSERT_EQ(hung.exit_code, 0) << hung.err;
  expect_says(hung, "sample 7 of points.py gave nothing within 2.0 s and was ended");
  expect_same("hung", "whole");
}

TEST_F(PythonDataset, ASampleThatEndsTwoWorkersEndsTheRun) {
  const Finished finished = run_with({}, "runs", {"ENDS=1"});
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
  expect_says(finished,
              "two worker processes ended while they read sample 7 of points.py, the second one exited with code 3");
  const Finished skipped = run_with({"data.on_bad_sample=skip"}, "skipped", {"ENDS=1"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  const Finished killed = run_with({"data.on_bad_sample=skip"}, "killed", {"KILLED=1"});
  EXPECT_EQ(killed.exit_code, 5) << killed.err << "no sample is bad for want of memory";
  expect_says(killed,
              "two worker processes ended while they read sample 7 of points.py, the second one was ended by SIGKILL");
}

TEST_F(PythonDataset, AnExceptionShowsSampleFileAndLine) {
  const Finished finished = run_with({}, "runs", {"RAISES=1"});
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
  expect_says(finished, "sample 7 of points.py: points.py, line 60, in make_trouble: ValueError: seven is not allowed");
}

TEST_F(PythonDataset, ASampleOfAnotherShapeIsNamed) {
  const Finished finished = run_with({}, "runs", {"SHORTER=1"});
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
  expect_says(finished, "sample 7 of points.py: its field 'x' is float32 [2], and float32 [3] in sample 0");
}

TEST_F(PythonDataset, WhatIsWrongInTheFileIsSaidAtTheStart) {
  const Finished words = run({"data.options.class=Words"}, "words");
  EXPECT_EQ(words.exit_code, 2) << words.err;
  expect_says(words, "sample 0 does not suit: its field 'y' is a str");
  const Finished nothing = run({"data.options.class=Lines"}, "nothing");
  EXPECT_EQ(nothing.exit_code, 2) << nothing.err;
  expect_says(nothing, "no class or function of points.py; its classes with __getitem__ are Points, Words");
  const Finished arguments = run({"data.options.args.size=3"}, "arguments");
  EXPECT_EQ(arguments.exit_code, 2) << arguments.err;
  expect_says(arguments, "data.options.args do not suit Points(samples=160, noise=0.1)");
  write_text(folder_ / "truth.py", "import nothing_of_this_name\n");
  const Finished imported = run({}, "imported");
  EXPECT_EQ(imported.exit_code, 2) << imported.err;
  expect_says(imported, "truth.py, line 1, in <module>: ModuleNotFoundError");
}

TEST_F(PythonDataset, TuplesAndSplitsAndNormalisation) {
  const std::string text = read_text(folder_ / "trial.toml");
  const auto more = [&](const std::string& lines) {
    std::string changed = text;
    changed.insert(changed.find("\n[train]"), lines);
    const size_t split = changed.find("split = ");
    changed.erase(split, changed.find('\n', split) - split);
    write_text(folder_ / "trial.toml", changed);
  };
  more(
      "args = { samples = 64 }\nval_args = { samples = 16 }\nnames = [\"x\", \"y\"]\n"
      "normalize = [{ field = \"x\", axis = 0 }]\n");
  const Finished finished = run({"data.options.class=pairs"}, "runs");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 3 * 64 / 8);
}

TEST_F(PythonDataset, TheFileAndItsImportsAreInTheIdentity) {
  ASSERT_EQ(run({"train.epochs=1"}, "first").exit_code, 0);
  ASSERT_EQ(run({"train.epochs=1", "data.num_workers=1"}, "second").exit_code, 0);
  EXPECT_EQ(identity("first"), identity("second"));
  write_text(folder_ / "truth.py", "def of(x):\n    return x[0] - 3 * x[1] + 0.5\n");
  ASSERT_EQ(run({"train.epochs=1"}, "changed").exit_code, 0);
  EXPECT_NE(identity("first"), identity("changed"));
}

TEST_F(PythonDataset, WorkersAreOnTheLedgerAndInThePlan) {
  const Finished finished = run_with({"train.epochs=1"}, "runs", {"SLEEP=0.02"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  int64_t most = 0;
  for (const auto& record : read_json_lines(run_folder() / "memory.jsonl"))
    most = std::max(most, record.at("workers_bytes").get<int64_t>());
  EXPECT_GT(most, 2 << 20) << "two Pythons";
  const Finished plan = headroom_program({"plan", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR},
                                         here({"XDG_CACHE_HOME=" + (folder_ / "cache").string()}));
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.out.find("for worker processes"), std::string::npos) << plan.out << plan.err;
}

}  // namespace
}  // namespace headroom
