// Modules of a user's Python file in whole runs, by the Python of $HEADROOM_TEST_PYTHON (a program or an environment),
// which must have the torch that the host is built with.
#include <cmath>
#include <cstdlib>

#include "python_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

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
  expect_bit_equal_after_kill({});
  EXPECT_NE(weights("whole").find("\"calls\""), std::string::npos) << "buffers by their names of state_dict";
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

TEST_F(PythonRun, AFunctionNamedAsABuiltInLossStandsInItsPlace) {
  add_to_file(
      "\n\ndef mse(outputs, batch):\n    return 2 * (outputs - batch[\"y\"]).square().sum(), outputs.numel()\n");
  ASSERT_EQ(run({"train.epochs=1", "train.optimizer.lr=1e-9"}, "own").exit_code, 0);
  ASSERT_EQ(run({"train.epochs=1", "train.optimizer.lr=1e-9", "model.options.loss=of_each"}, "each").exit_code, 0);
  EXPECT_NEAR(loss("own"), 2 * loss("each"), 1e-4 * loss("own"));
}

TEST_F(PythonRun, AnExceptionShowsFileLineAndShapes) {
  const Finished wrong = run({"model.options.args.width=7"}, "wrong");
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_NE(wrong.err.find("model.py, line 55, in forward: RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
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

TEST_F(PythonRun, TheFilesGroupsTrainAsThoseOfTheExperimentDo) {
  ASSERT_EQ(run({}, "plain").exit_code, 0);
  ASSERT_EQ(run({"train.groups=[{match=\"first.*\",lr_scale=0.1,weight_decay=0.0}]"}, "experiment").exit_code, 0);
  add_to_file(R"(

def param_groups(module):
    return [{"params": module.first.parameters(), "lr_scale": 0.1, "weight_decay": 0.0}]
)");
  ASSERT_EQ(run({}, "file").exit_code, 0);
  EXPECT_TRUE(weights("file") == weights("experiment"));
  EXPECT_FALSE(weights("file") == weights("plain"));
  const std::pair<const char*, const char*> groups[] = {
      {R"({"params": module.first.parameters(), "weight_decay": 0.1})", "write weight_decay_scale, a factor"},
      {R"({"params": module.first.parameters(), "betas": (0.9, 0.9)})", "has 'betas', which is not known"},
      {R"({"params": [torch.zeros(3)]})", "has a parameter that is none of the module's"},
      {R"({"params": list(module.parameters()) * 2})", "which is in a group before it too"},
      {R"({"lr": 0.1})", "must give a list of dicts"}};
  for (const auto& [group, sentence] : groups) {
    add_to_file("\n\ndef param_groups(module):\n    return [" + std::string(group) + "]\n");
    const Finished refused = run({}, "refused");
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_NE(refused.err.find(sentence), std::string::npos) << refused.err;
  }
}

// What a file does to Python and torch as a whole does not reach the run.
TEST_F(PythonRun, FirstWeightsFollowFromTheExperimentsSeed) {
  ASSERT_EQ(run({}, "plain").exit_code, 0);
  add_to_file(
      "\n\ntorch.manual_seed(0)\ntorch.set_num_threads(2)\n\n\n"
      "def shows(outputs, batch):\n"
      "    print('threads:', torch.get_num_threads())\n"
      "    return (outputs - batch['y']).square().sum(), outputs.numel()\n");
  const Finished seeded = run({"model.options.loss=shows"}, "seeded");
  ASSERT_EQ(seeded.exit_code, 0) << seeded.err;
  EXPECT_TRUE(weights("seeded") == weights("plain"));
  EXPECT_NE(seeded.err.find("threads: 1\n"), std::string::npos) << seeded.err;
  EXPECT_EQ(seeded.err.find("threads: 2\n"), std::string::npos) << seeded.err;
}

// The host draws large ones in its own way.
TEST_F(PythonRun, FirstWeightsAreThoseOfAPlainScriptWithTheSameSeed) {
  add_to_file(R"(

class Wide(Line):
    def __init__(self):
        super().__init__()
        drawn = [nn.init.uniform_(torch.empty(1500, 900), -0.1, 0.2), nn.init.normal_(torch.empty(1100, 901), 0, 0.02)]
        bits = [weight.view(torch.int32).flatten().long() for weight in drawn + [self.linear.weight.detach()]]
        print("drawn:", [(bit * torch.arange(1, len(bit) + 1)).sum().item() for bit in bits], flush=True)
)");
  const Finished by_host = run({"model.options.class=Wide", "train.max_steps=1", "experiment.threads=2"});
  ASSERT_EQ(by_host.exit_code, 0) << by_host.err;
  const std::string script = "cd " + folder_.string() + R"sh( && at="$HEADROOM_TEST_PYTHON" &&
if [ -d "$at" ]; then at="$at/bin/python"; fi &&
"$at" -c "import torch, model; torch.manual_seed(3); model.Wide()" > plain.txt)sh";
  ASSERT_EQ(std::system(script.c_str()), 0);
  const std::string plain = read_text(folder_ / "plain.txt");
  EXPECT_EQ(plain.find("drawn: ["), 0u) << plain;
  EXPECT_NE(by_host.err.find(plain), std::string::npos) << by_host.err << "by a script: " << plain;
}

TEST_F(PythonRun, AModuleBuiltInTheOrderOfASetIsTheSameInEveryProcess) {
  add_to_file(R"(

class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        for name in {"red", "green", "blue", "black", "white", "grey", "pink"}:
            setattr(self, name, nn.Linear(3, 1))

    def forward(self, x):
        return sum(part(x) for part in self.children())
)");
  for (const char* out : {"one", "two"})
    ASSERT_EQ(run({"model.options.class=Parts", "train.epochs=1"}, out).exit_code, 0);
  EXPECT_TRUE(weights("one") == weights("two"));
}

TEST_F(PythonRun, AModuleThatIsInEvalAsAWholeIsTrained) {
  add_to_file("\n\ndef loaded(**options):\n    return Net(**options).eval()\n");
  ASSERT_EQ(run({}, "class").exit_code, 0);
  ASSERT_EQ(run({"model.options.class=loaded"}, "loaded").exit_code, 0);
  EXPECT_TRUE(weights("loaded") == weights("class"));
  const Finished norm = run({"model.options.class=loaded", "model.options.args.norm=true"}, "norm");
  ASSERT_EQ(norm.exit_code, 0) << norm.err;
  EXPECT_NE(norm.err.find("in norm (BatchNorm1d)"), std::string::npos) << norm.err;
}

TEST_F(PythonRun, CouplingIsFoundBehindWeightsOfZero) {
  add_to_file(R"(

class ZeroHead(Net):
    def __init__(self, **options):
        super().__init__(**options)
        nn.init.zeros_(self.last.weight)


class Mixes(ZeroHead):
    def forward(self, x):
        return super().forward(x - x.mean(0, keepdim=True))
)");
  const Finished norm = run({"model.options.class=ZeroHead", "model.options.args.norm=true", "train.epochs=1"}, "norm");
  ASSERT_EQ(norm.exit_code, 0) << norm.err;
  EXPECT_NE(norm.err.find("in norm (BatchNorm1d)"), std::string::npos) << norm.err;
  const Finished mixes = run({"model.options.class=Mixes", "train.epochs=1"}, "mixes");
  ASSERT_EQ(mixes.exit_code, 0) << mixes.err;
  EXPECT_NE(mixes.err.find("influence each other"), std::string::npos) << mixes.err;
  const Finished apart = run({"model.options.class=ZeroHead", "train.epochs=1"}, "apart");
  EXPECT_EQ(apart.err.find("influence each other"), std::string::npos) << apart.err;
}

TEST_F(PythonRun, AStepThatChangesTheNextOneIsNeverDivided) {
  add_to_file(R"(

class Normed(Net):
    def __init__(self):
        super().__init__()
        nn.utils.parametrizations.spectral_norm(self.first)


class Counts(Net):
    steps = 0

    def forward(self, x):
        self.steps += 1
        return super().forward(x) * (1 + 0.1 * self.steps)
)");
  const Finished whole = run({"model.options.class=Normed"}, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.err.find("each step changes the next one, through the buffer 'first."), std::string::npos)
      << whole.err;
  ASSERT_EQ(run({"model.options.class=Normed", "train.micro_batch=2"}, "divided").exit_code, 0);
  EXPECT_TRUE(weights("divided") == weights("whole"));
  const Finished counts = run({"model.options.class=Counts", "train.epochs=1"}, "counts");
  ASSERT_EQ(counts.exit_code, 0) << counts.err;
  EXPECT_NE(counts.err.find("two steps with the same samples and buffers differ"), std::string::npos) << counts.err;
}

TEST_F(PythonRun, SamplesAnswersForAModuleThatCannotBeTried) {
  add_to_file(R"(

class Locked(Net):
    def __init__(self):
        super().__init__()
        import threading
        self.lock = threading.Lock()
)");
  const Finished refused = run({"model.options.class=Locked"}, "refused");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("the module cannot be copied"), std::string::npos) << refused.err;
  const Finished told = run({"model.options.class=Locked", "model.options.samples=independent"}, "told");
  EXPECT_EQ(told.exit_code, 0) << told.err;
}

TEST_F(PythonRun, AuxiliaryHeadsInTrainingAreNoPrediction) {
  add_to_file(R"(

class Auxiliary(Net):
    def forward(self, x):
        outputs = super().forward(x)
        return (outputs, outputs) if self.training else outputs


def both(outputs, batch):
    main = outputs[0] if isinstance(outputs, tuple) else outputs
    return (main - batch["y"]).square().sum(), main.numel()
)");
  ASSERT_EQ(run({}, "plain").exit_code, 0);
  const Finished finished = run({"model.options.class=Auxiliary", "model.options.loss=both"}, "auxiliary");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(weights("auxiliary") == weights("plain"));
}

// compile = true is in python_models_test.
TEST_F(PythonRun, OnlyTheOptionCompiles) {
  ASSERT_EQ(run({}, "plain").exit_code, 0);
  const Finished refused = run({"model.options.compile=true"}, "refused");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("a step draws random numbers"), std::string::npos) << refused.err;
  add_to_file(R"(

class Steps(Line):
    steps = 0

    def forward(self, x):
        self.steps += 1
        return super().forward(x) + 0.0 * self.steps
)");
  const Finished endless =
      run({"model.options.class=Steps", "model.options.compile=true", "train.epochs=2"}, "endless");
  EXPECT_EQ(endless.exit_code, 2) << endless.err;
  EXPECT_NE(endless.err.find("is compiled again with every step"), std::string::npos) << endless.err;
  add_to_file("\n\ndef compiled():\n    return torch.compile(Net())\n");
  const Finished finished = run({"model.options.class=compiled"}, "compiled");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(weights("compiled") == weights("plain"));
}

TEST_F(PythonRun, DrawsThatCannotBeKeyedAreRefused) {
  add_to_file(R"(

class Draws(Net):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "complex":
            return super().forward(x + torch.randn(x.shape, dtype=torch.complex64).real)
        if self.how == "out":
            noise = torch.empty_like(x)
            torch.normal(x, 1.0, out=noise)
            return super().forward(noise)
        return super().forward(x[torch.randperm(len(x))])
)");
  const std::pair<const char*, const char*> draws[] = {{"complex", "draws complex numbers"},
                                                       {"out", "aten::normal, whose numbers cannot be keyed"},
                                                       {"order", "aten::randperm, whose numbers cannot be keyed"}};
  for (const auto& [how, sentence] : draws) {
    const Finished refused =
        run({"model.options.class=Draws", std::string("model.options.args.how=") + how}, "refused");
    EXPECT_NE(refused.exit_code, 0) << how;
    EXPECT_NE(refused.err.find(sentence), std::string::npos) << how << refused.err;
  }
}

// As LibTorch's own draws: a gradient that went through one would train another model than torch does.
TEST_F(PythonRun, NoGradientGoesThroughADraw) {
  add_to_file(R"(

class Noisy(Line):
    def forward(self, x):
        outputs = super().forward(x)
        if torch.is_grad_enabled():
            for noise in (outputs.clone().normal_(), torch.normal(outputs, 1.0), torch.normal(outputs, outputs.exp())):
                if noise.requires_grad:
                    through = torch.autograd.grad(noise.sum(), outputs, retain_graph=True, allow_unused=True)[0]
                    assert through is None or not through.any(), "a gradient went through a draw"
        return outputs
)");
  const Finished finished = run({"model.options.class=Noisy", "train.max_steps=1"}, "noisy");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(PythonRun, AFileThatIsImportedFromElsewhereIsNamed) {
  fs::create_directory(folder_ / "elsewhere");
  write_text(folder_ / "elsewhere/others.py", "width = 3\n");
  add_to_file("\n\nimport others\n");
  fs::rename(folder_ / "layers.py", folder_ / "linked.py");
  fs::create_symlink("linked.py", folder_ / "layers.py");
  const Finished finished = run_with({"train.max_steps=1"}, "runs", {"PYTHONPATH=" + (folder_ / "elsewhere").string()});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("elsewhere/others.py is imported in a way that Headroom does not see"), std::string::npos)
      << finished.err;
  EXPECT_EQ(finished.err.find("linked.py"), std::string::npos) << "it is layers.py, whose content is digested";
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
