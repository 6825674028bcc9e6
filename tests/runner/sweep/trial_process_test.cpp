#include "sweep/trial_process.hpp"

#include <fstream>
#include <gtest/gtest.h>

#include "../config/files.hpp"
#include "error.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

TrialEnd ended(Exit exit, bool oom_kill = false, int64_t micro_batch = 8) {
  return {.exit_code = static_cast<int>(exit), .oom_kill = oom_kill, .micro_batch = micro_batch, .sentence = ""};
}

TEST(TrialEnds, WhatRanOutOfMemoryIsRetriedOnce) {
  TrialRecord record;
  EXPECT_EQ(judge(ended(Exit::does_not_fit), {}, record), Verdict::retry_smaller);
  EXPECT_EQ(judge(ended(Exit::killed, /*oom_kill=*/true), {}, record), Verdict::retry_smaller);
  EXPECT_EQ(judge(ended(Exit::does_not_fit, false, 1), {}, record), Verdict::failed) << "there is nothing smaller";
  record.retry_micro_batch = 4;
  EXPECT_EQ(judge(ended(Exit::does_not_fit), {}, record), Verdict::failed);
  EXPECT_EQ(judge(ended(Exit::killed, true), {}, record), Verdict::failed);
}

TEST(TrialEnds, WhatRanOutBeforeItsFirstBatchGoesOnAsItIs) {
  for (const bool oom_kill : {false, true}) {
    TrialEnd end = ended(oom_kill ? Exit::killed : Exit::does_not_fit, oom_kill);
    end.in_setup = true;
    EXPECT_EQ(judge(end, {}, {}), Verdict::go_on) << oom_kill;
  }
}

TEST(TrialEnds, WhatWasStoppedOrKilledGoesOn) {
  const TrialRecord record;
  for (const Exit exit : {Exit::resumable, Exit::interrupted, Exit::killed})
    EXPECT_EQ(judge(ended(exit), {}, record), Verdict::go_on) << static_cast<int>(exit);
  EXPECT_EQ(judge({.exit_code = 128 + 15, .sentence = ""}, {}, record), Verdict::go_on) << "its supervisor";
  TrialRun run;
  run.finished = true;
  EXPECT_EQ(judge(ended(Exit::killed), run, record), Verdict::finished) << "a kill that came too late";
}

TEST(TrialEnds, MistakesFail) {
  for (const Exit exit : {Exit::bad_input, Exit::plugin, Exit::data, Exit::cannot_write, Exit::diverged, Exit::bug})
    EXPECT_EQ(judge(ended(exit), {}, {}), Verdict::failed) << static_cast<int>(exit);
}

const std::string first_line = "== 2026-11-21T06:30:11.042Z headroom run\n";

TEST(TrialEnds, TheLogOfTheAttemptSaysWhy) {
  const TemporaryFolder sweep;
  const TrialFolder folder(sweep.path(), "001");
  sweep.write("trials/001/log.txt",
              first_line + "[data] of an earlier attempt\n" + first_line +
                  "epoch 1\n[data] file.h5: broken\n"
                  "[postmortem] the trainer was killed by the kernel's OOM killer: cgroup /x\nlast words\n");
  const TrialEnd end = read_trial_end(folder, {}, 4, fs::file_time_type::clock::now());
  EXPECT_EQ(end.sentence, "[data] file.h5: broken");
  EXPECT_TRUE(end.oom_kill);
  sweep.write("trials/001/log.txt", "[postmortem] killed by the kernel's OOM killer\n" + first_line + "no sentence\n");
  const TrialEnd next = read_trial_end(folder, {}, 70, fs::file_time_type::clock::now());
  EXPECT_EQ(next.sentence, "no sentence");
  EXPECT_FALSE(next.oom_kill) << "that was before";
}

TEST(TrialEnds, ATrialMayWriteEqualSigns) {
  const TemporaryFolder sweep;
  const TrialFolder folder(sweep.path(), "001");
  // The first attempt was killed within a line.
  sweep.write("trials/001/log.txt", "[data] of an earlier attempt\nepoch 1" + first_line +
                                        "[postmortem] killed by the kernel's OOM killer\n"
                                        "[data] length == 5 is refused\n== done ==\n");
  const TrialEnd end = read_trial_end(folder, {}, 4, fs::file_time_type::clock::now());
  EXPECT_EQ(end.sentence, "[data] length == 5 is refused");
  EXPECT_TRUE(end.oom_kill);
  sweep.write("trials/001/log.txt", "[data] of an earlier attempt\nepoch 1" + first_line + "a == b\n");
  EXPECT_EQ(read_trial_end(folder, {}, 4, fs::file_time_type::clock::now()).sentence, "a == b");
}

TEST(TrialEnds, SlurmKillsForMemory) {
  const TemporaryFolder sweep;
  const TrialFolder folder(sweep.path(), "001");
  const std::string says =
      "slurmstepd-n1: error: StepId=3.batch exceeded memory limit (328310784 > 52428800), being killed";
  sweep.write("trials/001/log.txt",
              first_line + "epoch 1\n" + says + "\nslurmstepd-n1: error: *** JOB 3 CANCELLED ***\n");
  const TrialEnd end = read_trial_end(folder, {}, 137, fs::file_time_type::clock::now());
  EXPECT_TRUE(end.ran_out());
  EXPECT_EQ(end.sentence, "[sweep] Slurm killed its job for holding more than --mem: " + says);
  // A requeued job has the lines of its first attempt in the log, too.
  sweep.write("trials/001/log.txt", first_line + says + "\n" + first_line + "[data] broken\n");
  EXPECT_FALSE(read_trial_end(folder, {}, 137, fs::file_time_type::clock::now()).oom_kill);
}

TEST(TrialBounds, TheLimitOfATrialHasRoomInWhatItIsGiven) {
  constexpr int64_t mib = 1 << 20;
  for (const int64_t bound : {300 * mib, 6000 * mib, int64_t{1} << 41})
    EXPECT_LE(bound_for(limit_within(bound)), bound);
  EXPECT_GT(limit_within(6000 * mib), 4000 * mib);
  EXPECT_EQ(limit_within(100 * mib), 1) << "no limit at all would be 0";
}

TEST(TrialEnds, APostMortemOfThisAttemptIsBelieved) {
  const TemporaryFolder sweep;
  const TrialFolder folder(sweep.path(), "001");
  sweep.write("trials/001/x/run/experiment.toml", "");
  const auto began = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  const auto file = sweep.write("trials/001/x/run/postmortem.json", R"({"ended": {"kind": "oom_kill"}})");
  EXPECT_TRUE(read_trial_end(folder, {}, 137, began).oom_kill);
  fs::last_write_time(file, began - std::chrono::minutes(1));
  EXPECT_FALSE(read_trial_end(folder, {}, 137, began).oom_kill) << "of an earlier attempt";
}

TEST(FailureStorms, ThreeOfFourAreAStorm) {
  FailureStorm storm;
  storm.add_success();
  storm.add_failure("[data] file 7: no room");
  storm.add_failure("[data] file 8: no room");
  EXPECT_FALSE(storm.sentence());
  storm.add_failure("[data] file 9: no room");
  EXPECT_EQ(storm.sentence(), "[data] file 9: no room");
}

TEST(FailureStorms, DifferentMistakesAndFewAreNone) {
  FailureStorm storm;
  for (const char* sentence : {"a", "b", "c", "d"}) storm.add_failure(sentence);
  EXPECT_FALSE(storm.sentence());
  FailureStorm few;
  for (int i = 0; i < 12; ++i) few.add_success();
  for (int i = 0; i < 3; ++i) few.add_failure("a");
  EXPECT_FALSE(few.sentence());
}

}  // namespace
}  // namespace headroom
