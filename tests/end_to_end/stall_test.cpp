// Runs that stand still, and what is said of them while they do.
#include <chrono>
#include <gmock/gmock.h>
#include <thread>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

using Stall = TrialRun;

TEST_F(Stall, AStepThatDoesNotReturnIsToldWhileItRuns) {
  const fs::path waiting = folder_ / "waiting";
  const std::string pause = "HEADROOM_TEST_PAUSE=train:3:" + waiting.string();
  Program program(run_words(), here({pause, "HEADROOM_STALL_SECONDS=1"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  std::this_thread::sleep_for(std::chrono::seconds(4));
  fs::remove(waiting);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("no progress for "));
  EXPECT_THAT(
      finished.err,
      HasSubstr(" s at step 3 of epoch 1: 'trial_model step' has not returned; it goes on waiting, Ctrl-C ends it"));
}

TEST_F(Stall, AReadThatDoesNotReturnIsToldWhileItRunsAndASlowOneIsNot) {
  write_text(folder_ / "slow.toml", R"([experiment]
name = "slow"
device = "cpu"

[model]
plugin = "hungry_model"

[data]
source = "hungry_source"
split = { train = 0.5, val = 0.5, test = 0.0 }
num_workers = 1

[data.options]
samples = 2

[train]
batch_size = 1
max_steps = 1
optimizer = { name = "sgd", lr = 1e-4 }
)");
  const auto told = [&](const std::string& sleep_ms, const std::string& seconds) {
    const Finished finished = headroom_program({"run", "slow.toml", "--no-plan", "--out", "runs", "--plugin-dir",
                                                HEADROOM_TEST_PLUGIN_DIR, "--set", "data.options.sleep_ms=" + sleep_ms},
                                               here({"HEADROOM_STALL_SECONDS=" + seconds}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.err;
  };
  EXPECT_THAT(told("4000", "1"), HasSubstr("it waits for a batch of the datasource"));
  for (const auto& [sleep_ms, seconds] : {std::pair{"200", "20"}, std::pair{"3000", "0"}})
    EXPECT_THAT(told(sleep_ms, seconds), Not(HasSubstr("it waits for a batch"))) << sleep_ms;
}

TEST_F(Stall, ACheckThatDoesNotReturnIsToldWhileItRuns) {
  const auto told = [&](const std::string& seconds) {
    const Finished finished =
        headroom_program({"plugins", "check", "trial_source", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR},
                         here({"HEADROOM_TEST_READ=sleep", "HEADROOM_STALL_SECONDS=" + seconds}));
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
    return finished.err;
  };
  EXPECT_THAT(told("1"), HasSubstr("the check stands still for 1 s: 'trial_source read' has not returned; it goes on "
                                   "waiting, Ctrl-C ends it"));
  EXPECT_THAT(told("60"), Not(HasSubstr("the check stands still")));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which report crashes themselves
TEST_F(Stall, ACrashInACheckIsTheMistakeOfThePluginThatItNames) {
  const auto check = [&](std::vector<std::string> words, const std::string& fault) {
    words.insert(words.begin(), {"plugins", "check"});
    words.insert(words.end(), {"--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    return headroom_program(words, here({fault}));
  };
  const Finished source = check({"trial_source"}, "HEADROOM_TEST_READ=crash");
  EXPECT_EQ(source.exit_code, 3);
  EXPECT_THAT(source.err, HasSubstr("FAIL  [plugin] trial_source read: the plugin crashed there (SIGSEGV)"));
  const Finished model = check({"trial_model"}, "HEADROOM_TEST_FAULT=crash:0:0");
  EXPECT_EQ(model.exit_code, 3);
  EXPECT_THAT(model.err, HasSubstr("FAIL  [plugin] trial_model step: the plugin crashed there (SIGSEGV)"));
}
#endif

TEST_F(Stall, ATimeThatIsNoneIsRefused) {
  for (const char* text : {"1min", "", "-1"}) {
    const Finished finished = headroom_program(run_words(), here({std::string("HEADROOM_STALL_SECONDS=") + text}));
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.err,
                HasSubstr("[HEADROOM_STALL_SECONDS] '" + std::string(text) + "' is no number of seconds"));
  }
}

}  // namespace
}  // namespace headroom
