// Modules of a user's Python file where memory runs out, and what they hold.
#include "python_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class PythonMemory : public PythonRun {};

TEST_F(PythonMemory, OutOfMemoryInForwardAndBackwardIsRepeatedExactly) {
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

TEST_F(PythonMemory, TooLittleMemoryToImportTorchDoesNotFit) {
  for (const char* limit : {"memory.limit=90MiB", "memory.limit=110MiB", "memory.limit=150MiB"}) {
    auto words = run_words({limit}, limit);
    words.emplace_back("--no-plan");
    const Finished finished = headroom(words);
    EXPECT_EQ(finished.exit_code, 5) << finished.err;
    EXPECT_NE(finished.err.find("no memory for the model"), std::string::npos) << finished.err;
  }
}

TEST_F(PythonMemory, ASwallowedOutOfMemoryIsRepeatedToo) {
  add_to_file(R"(

class Swallows(Net):
    def forward(self, x):
        outputs = super().forward(x)
        mark = os.environ.get("SWALLOW")
        if mark and torch.is_grad_enabled() and int(self.calls) > 5 and not os.path.exists(mark):
            open(mark, "w").close()
            try:
                torch.empty(1 << 46)
            except RuntimeError:
                outputs = outputs * 0.5
        return outputs
)");
  ASSERT_EQ(run({"model.options.class=Swallows"}, "whole").exit_code, 0);
  const std::string mark = (folder_ / "mark").string();
  const Finished finished = run_with({"model.options.class=Swallows"}, "swallowed", {"SWALLOW=" + mark});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(fs::exists(mark));
  EXPECT_NE(finished.err.find("repeated as it was"), std::string::npos) << finished.err;
  EXPECT_TRUE(weights("swallowed") == weights("whole"));
}

TEST_F(PythonMemory, WhatGrowsInPythonIsNamed) {
  add_to_file(R"(

class Meter:
    def __init__(self):
        self.values = []


class Hoards(Net):
    def __init__(self):
        super().__init__()
        self.meter = Meter()

    def forward(self, x):
        self.meter.values.append(x.sum())
        return super().forward(x)


def hider():
    kept = []
    return kept.append


hide = hider()


class Hides(Net):
    def forward(self, x):
        hide(x.sum())
        return super().forward(x)
)");
  const std::pair<const char*, const char*> models[] = {
      {"Hoards", "leak: Hoards.meter.values holds"}, {"Hides", "objects of type Tensor more"}, {"Net", ""}};
  for (const auto& [name, sentence] : models) {
    const Finished finished = run({"train.epochs=8", std::string("model.options.class=") + name}, name);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const bool is_named = finished.err.find("in no checkpoint") != std::string::npos;
    EXPECT_EQ(is_named, *sentence != '\0') << name << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << name << finished.err;
  }
}

TEST_F(PythonMemory, WhatIsNeverTrainedIsHeldOnce) {
  add_to_file(R"(

class Frozen(Net):
    def __init__(self, numbers):
        super().__init__()
        self.backbone = nn.Parameter(torch.ones(numbers), requires_grad=False)

    def forward(self, x):
        return super().forward(x * self.backbone[0])
)");
  constexpr int64_t bytes = int64_t{256} << 20;
  const auto peak = [&](int64_t numbers) {
    const std::string out = std::to_string(numbers);
    const Finished finished =
        run({"model.options.class=Frozen", "model.options.args.numbers=" + out, "train.max_steps=1"}, out);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.peak_resident_bytes;
  };
  const int64_t small = peak(1), large = peak(bytes / 4);
  EXPECT_LT(large - small, bytes / 2 * 3);
}

}  // namespace
}  // namespace headroom
