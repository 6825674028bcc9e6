// Modules of a user's Python file in whole runs, by the Python of $HEADROOM_TEST_PYTHON (a program or an environment)
// or the active environment. Skipped where that has not the torch that the host is built with.
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr const char* model_file = R"(import os
import time

import torch
from torch import nn

import layers


class Line(nn.Module):
    def __init__(self, inputs=3, outputs=1):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)


class FailsOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        fail_once("backward")
        return gradient


def fail_once(where):
    mark = os.environ.get("FAIL_ONCE_IN_" + where.upper())
    if mark and not os.path.exists(mark):
        open(mark, "w").close()
        raise torch.OutOfMemoryError("made up")


class Net(nn.Module):
    def __init__(self, inputs=3, hidden=8, dropout=0.2, norm=False, width=3):
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.norm = nn.BatchNorm1d(hidden) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.last = layers.Last(hidden, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.calls = self.calls + 1
            pause = os.environ.get("PAUSE")
            if pause and int(self.calls) == 40:
                open(pause, "w").close()
                while os.path.exists(pause):
                    time.sleep(0.01)
        hidden = self.dropout(torch.relu(self.norm(self.first(x))))
        if int(self.calls) > 5:
            fail_once("forward")
            hidden = FailsOnce.apply(hidden)
        return self.last(hidden)


def mean(outputs, batch):
    return nn.functional.mse_loss(outputs, batch["y"])


def of_each(outputs, batch):
    return (outputs - batch["y"]).square().mean(1)


def draws_of_numpy(outputs, batch):
    import random
    return (outputs * random.random()).sum(), outputs.numel()
)";

std::string python_line() {
  const char* python = std::getenv("HEADROOM_TEST_PYTHON");
  return python != nullptr ? "python = \"" + std::string(python) + "\"\n" : "";
}

class PythonRun : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    write_text(folder_ / "model.py", model_file);
    write_text(folder_ / "layers.py", "from torch import nn\n\n\nclass Last(nn.Linear):\n    pass\n");
    const std::string trial = R"([experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1

[model]
plugin = "python"

[model.options]
file = "model.py"
class = "Net"
inputs = ["x"]
target = "y"
loss = "mse"
)" + python_line() + R"(
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
every_steps = 10
)";
    write_text(folder_ / "trial.toml", trial);
    const Finished tried = run({"train.max_steps=1"}, "tried");
    for (const char* reason : {"no Python was found", "has no shared libpython", "has no torch", "is not the LibTorch",
                               "cannot be imported"}) {
      if (tried.err.find(reason) != std::string::npos) GTEST_SKIP() << tried.err;
    }
    ASSERT_EQ(tried.exit_code, 0) << tried.err;
  }

  Finished run_with(const std::vector<std::string>& set, const std::string& out,
                    const std::vector<std::string>& environment = {}) const {
    return headroom_program(run_words(set, out), here(environment));
  }
  std::string weights(const std::string& out) const {
    return read_text(run_folder(out) / "checkpoints/last/model.safetensors");
  }
  double loss(const std::string& out) const {
    return read_json(run_folder(out) / "summary.json").at("metrics").at("val/loss").get<double>();
  }
};

TEST_F(PythonRun, ALinearModuleEndsBitEqualToTheOneInCpp) {
  ASSERT_EQ(run({"model.options.class=Line"}, "python").exit_code, 0);
  std::string text = read_text(folder_ / "trial.toml");
  const size_t begin = text.find("[model]"), end = text.find("[data]");
  text.replace(begin, end - begin, "[model]\nplugin = \"" HEADROOM_BUILD_DIR "/examples/linear_model.so\"\n\n");
  write_text(folder_ / "trial.toml", text);
  ASSERT_EQ(run({}, "cpp").exit_code, 0);
  EXPECT_TRUE(weights("python") == weights("cpp"));
  EXPECT_EQ(loss("python"), loss("cpp"));
}

TEST_F(PythonRun, KilledAndResumedItEndsBitEqual) {
  ASSERT_EQ(run({}, "whole").exit_code, 0);
  const fs::path waiting = folder_ / "waiting";
  Program program(run_words({}, "killed"), here({"PAUSE=" + waiting.string()}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  kill(program.trainer(), SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 137);
  fs::remove(waiting);
  const Finished resumed =
      headroom({"run", "--resume", run_folder("killed").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("bit-equal to an undisturbed run"), std::string::npos) << resumed.err;
  EXPECT_TRUE(weights("killed") == weights("whole"));
  EXPECT_NE(weights("whole").find("\"calls\""), std::string::npos) << "buffers by their names of state_dict";
}

TEST_F(PythonRun, OutOfMemoryInForwardAndBackwardIsRepeatedExactly) {
  ASSERT_EQ(run({}, "whole").exit_code, 0);
  for (const std::string where : {"FORWARD", "BACKWARD"}) {
    const std::string mark = (folder_ / ("mark_" + where)).string();
    const Finished finished = run_with({}, where, {"FAIL_ONCE_IN_" + where + "=" + mark});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_TRUE(fs::exists(mark));
    EXPECT_NE(finished.err.find("repeated as it was"), std::string::npos) << finished.err;
    EXPECT_TRUE(weights(where) == weights("whole")) << where;
  }
}

TEST_F(PythonRun, DropoutIsTheSameForAnyMicroBatch) {
  ASSERT_EQ(run({"train.precision=fp64", "train.micro_batch=8"}, "eight").exit_code, 0);
  for (const std::string size : {"1", "3"}) {
    ASSERT_EQ(run({"train.precision=fp64", "train.micro_batch=" + size}, size).exit_code, 0);
    EXPECT_NEAR(loss(size), loss("eight"), 1e-11 * loss("eight")) << size;
  }
  ASSERT_EQ(run({"train.precision=fp64", "model.options.args.dropout=0.0"}, "without").exit_code, 0);
  EXPECT_GT(std::abs(loss("without") - loss("eight")), 1e-6);
}

TEST_F(PythonRun, BatchNormIsNeverDivided) {
  const std::vector<std::string> norm = {"model.options.args.norm=true"};
  const Finished whole = run(norm, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.err.find("in norm (BatchNorm1d)"), std::string::npos) << whole.err;
  ASSERT_EQ(run({norm[0], "train.micro_batch=2"}, "divided").exit_code, 0);
  EXPECT_TRUE(weights("divided") == weights("whole"));
}

TEST_F(PythonRun, AMeanAndOneValueASampleAreTheSumTheyStandFor) {
  ASSERT_EQ(run({}, "sum").exit_code, 0);
  const Finished mean = run({"model.options.loss=mean"}, "mean");
  ASSERT_EQ(mean.exit_code, 0) << mean.err;
  EXPECT_NE(mean.err.find("multiplied by the number of samples"), std::string::npos) << mean.err;
  ASSERT_EQ(run({"model.options.loss=of_each"}, "each").exit_code, 0);
  EXPECT_NEAR(loss("mean"), loss("sum"), 1e-4 * loss("sum"));
  EXPECT_NEAR(loss("each"), loss("sum"), 1e-4 * loss("sum"));
}

TEST_F(PythonRun, AnExceptionShowsFileLineAndShapes) {
  const Finished wrong = run({"model.options.args.width=7"}, "wrong");
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_NE(wrong.err.find("model.py, line 54, in forward: RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
            std::string::npos)
      << wrong.err;
  EXPECT_NE(wrong.err.find("x [3], y [1] a sample"), std::string::npos) << wrong.err;
  const std::pair<const char*, const char*> inputs[] = {
      {"model.options.class=Nets", "which model.py does not define; its modules are Line, Net"},
      {"model.options.args.depth=3", "do not suit Net(inputs=3, hidden=8"},
      {"model.options.target=z", "the data source gives no field 'z'; it gives x, y"},
      {"model.options.loss=msee", "it must be one of mse, mae, huber, cross_entropy or a function"},
      {"model.options.loss=draws_of_numpy", "draws from Python's random"},
      {"model.options.file=none.py", "which cannot be read"}};
  for (const auto& [set, sentence] : inputs) {
    const Finished refused = run({set}, "refused");
    EXPECT_EQ(refused.exit_code, 2) << set << refused.err;
    EXPECT_NE(refused.err.find(sentence), std::string::npos) << refused.err;
  }
}

TEST_F(PythonRun, AChangedFileIsAnotherModel) {
  ASSERT_EQ(run({"train.epochs=1"}, "first").exit_code, 0);
  write_text(folder_ / "layers.py", "from torch import nn\n\n\nclass Last(nn.Linear):\n    changed = True\n");
  const Finished resumed = headroom({"run", "--resume", run_folder("first").string(), "--plugin-dir",
                                     HEADROOM_TEST_PLUGIN_DIR, "--set", "train.epochs=2"});
  EXPECT_EQ(resumed.exit_code, 2) << resumed.err;
  EXPECT_NE(resumed.err.find("the model's file layers.py was "), std::string::npos) << resumed.err;
  ASSERT_EQ(run({"train.epochs=1"}, "second").exit_code, 0);
  EXPECT_NE(read_json(run_folder("first") / "summary.json").at("identity"),
            read_json(run_folder("second") / "summary.json").at("identity"));
}

}  // namespace
}  // namespace headroom
