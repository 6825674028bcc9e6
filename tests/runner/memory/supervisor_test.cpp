// Real children and real signals, in the hands of the supervisor; the stand-in plays the trainer.
#include "memory/supervisor.hpp"

#include "memory/supervised.hpp"
#include "stand_in/stand_in.hpp"

namespace headroom {
namespace {

class SupervisorTest : public WithFolder {
 protected:
  Ended run(const std::string& how) { return supervise(HEADROOM_STAND_IN, {folder_.string(), how}); }
};

TEST_F(SupervisorTest, PassesExitCodesOn) {
  for (const int code : {0, 2, 5, 75, 130}) {
    const Ended ended = run(std::to_string(code));
    EXPECT_EQ(ended.exit_code(), code);
    EXPECT_FALSE(ended.end.by_signal());
    EXPECT_EQ(ended.run_folder, folder_) << "as the trainer told it";
    EXPECT_GT(ended.end.peak_resident_bytes, 0);
  }
}

TEST_F(SupervisorTest, KillIsNoOutOfMemory) {
  const pid_t killer = send_when_there("ready", SIGKILL);
  const Ended ended = run("wait");
  waitpid(killer, nullptr, 0);
  EXPECT_EQ(ended.exit_code(), 137);
  EXPECT_EQ(ended.end.signal(), SIGKILL);
  EXPECT_FALSE(ended.oom_kill);
  EXPECT_EQ(how_it_ended(ended.end, ended.oom_kill), "was killed with SIGKILL, not by the kernel for lack of memory");
}

TEST_F(SupervisorTest, CrashesAreBugs) {
  for (const auto& [how, signal, name] :
       {std::tuple{"plugin", SIGSEGV, "SIGSEGV"}, std::tuple{"abort", SIGABRT, "SIGABRT"}}) {
    const Ended ended = run(how);
    EXPECT_EQ(ended.exit_code(), 70) << how;
    EXPECT_EQ(ended.end.signal(), signal);
    EXPECT_NE(how_it_ended(ended.end, ended.oom_kill).find(std::string("crashed with ") + name), std::string::npos);
  }
}

TEST_F(SupervisorTest, ASignalItDoesNotHandleEndsItAsItSays) {
  for (const auto& [signal, code] : {std::pair{SIGTERM, 75}, std::pair{SIGINT, 130}, std::pair{SIGQUIT, 70}}) {
    std::filesystem::remove(folder_ / "ready");
    const pid_t killer = send_when_there("ready", signal);
    const Ended ended = run("wait");
    waitpid(killer, nullptr, 0);
    EXPECT_EQ(ended.exit_code(), code);
    EXPECT_EQ(ended.end.signal(), signal);
  }
}

TEST_F(SupervisorTest, ForwardsSignalsAndKnowsTheirSender) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    std::filesystem::remove(folder_ / "ready");
    const pid_t sender = send_when_there("ready", signal, getpid());  // to the supervisor, which is this process
    const Ended ended = run("stop");
    EXPECT_EQ(ended.exit_code(), 75) << "a closed terminal asks to stop, too";
    ASSERT_TRUE(ended.last_forwarded);
    EXPECT_EQ(ended.last_forwarded->signal, signal);
    EXPECT_NE(ended.last_forwarded->sender.find("process " + std::to_string(sender)), std::string::npos)
        << ended.last_forwarded->sender;
    waitpid(sender, nullptr, 0);
  }
}

TEST_F(SupervisorTest, KnowsNoFolderOfATrainerThatEndedEarly) {
  const Ended ended = run("early");
  EXPECT_EQ(ended.exit_code(), 70);
  EXPECT_TRUE(ended.run_folder.empty());
}

// Then the kernel has nobody's death left to tell.
TEST_F(SupervisorTest, ATrainerWhoseSupervisorDiedBeforeItAskedEnds) {
  const auto end_under = [&](pid_t supervisor) {
    const std::string setting = parent_variable + std::to_string(supervisor);
    return wait_for(start_child({HEADROOM_STAND_IN, folder_.string(), "0"}, {.environment = {setting}}));
  };
  EXPECT_EQ(end_under(getppid()).signal(), SIGTERM) << "a process that is not its parent";
  EXPECT_EQ(end_under(getpid()).exit_code(), 0);
}

TEST_F(SupervisorTest, AProgramThatIsNotThereIsABug) {
  try {
    supervise(folder_ / "absent", {});
    FAIL();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::bug);
    EXPECT_NE(std::string(problem.what()).find("absent: No such file"), std::string::npos) << problem.what();
  }
}

TEST_F(SupervisorTest, OutputIsText) {
  Ended ended;
  EXPECT_EQ(output_of("/bin/echo", {"one", "two words"}, ended), "one two words\n");
  EXPECT_EQ(ended.exit_code(), 0);
  output_of("/bin/sh", {"-c", "kill -9 $$"}, ended);
  EXPECT_EQ(ended.exit_code(), 137);
}

TEST_F(SupervisorTest, WhatTheTrainerStartsDoesNotHoldTheWayToTheSupervisor) {
  EXPECT_EQ(run("files").exit_code(), 0);
  std::ifstream files(folder_ / "files");
  std::string left;
  EXPECT_FALSE(std::getline(files, left)) << left;
}

int oom_score() {
  int score = 0;
  std::ifstream("/proc/self/oom_score_adj") >> score;
  return score;
}

// Whatever they inherit: services and containers begin with scores of their own.
TEST_F(SupervisorTest, TheKernelTakesAProbeBeforeATrainerBeforeItsSupervisor) {
  const int own = std::max(0, oom_score());
  if (own + trainer_oom_rise + probe_oom_rise > 999) GTEST_SKIP() << "everything here is to be killed first";
  ASSERT_EQ(run("score").exit_code(), 0);
  int trainer = 0, probe = 0;
  std::ifstream(folder_ / "scores") >> trainer >> probe;
  EXPECT_EQ(trainer, own + trainer_oom_rise);
  EXPECT_EQ(probe, own + trainer_oom_rise + probe_oom_rise);
}

TEST(SignalNames, AreTheUsualOnes) {
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
}

}  // namespace
}  // namespace headroom
