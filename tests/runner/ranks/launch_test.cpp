// Ranks that are shell scripts: what their launcher tells them when one ends, and the exit code of the run.
#include "ranks/launch.hpp"

#include <gtest/gtest.h>
#include <string>

#include "error.hpp"

namespace headroom {
namespace {

constexpr int resumable = static_cast<int>(Exit::resumable);

// Two ranks of a run that goes on with one, and what is started in place of a killed one. The files are Roster's.
int launched(const std::string& first, const std::string& second, const std::string& again = "", int restarts = 0) {
  const std::string functions = R"(
here=$(dirname "$HEADROOM_RANKS_STORE")
sign_in() { echo $$ > "$here/trainer-$HEADROOM_RANK"; }
there() { for try in $(seq 3000); do if grep -qs -e "$1" "$here/$2"; then return; fi; sleep 0.01; done; exit 99; }
both_signed_in() { sign_in; there . trainer-0; there . trainer-1; }
go_on() { echo 5 > "$here/step-$1"; }
tell_run() { echo /run > "$here/run"; }
)";
  const std::string script = functions + "if [ $HEADROOM_RANK = 0 ]; then " + first + "; else " + second + "; fi";
  const auto resuming = [&](const std::filesystem::path& run) -> std::vector<std::string> {
    return {"-c", functions + "[ " + run.string() + " = /run ] && [ $HEADROOM_RANKS_COMES_BACK = 1 ]; " + again};
  };
  return launch_ranks("/bin/sh", {"-c", script}, 2, {.least = 1, .restarts = restarts, .resuming_words = resuming});
}

TEST(Launch, WhereOneIsKilledTheOtherGoesOnAndItsExitCodeIsTheRuns) {
  const std::string killed = "both_signed_in; kill -9 $$";
  const std::string goes_on = "both_signed_in; there goes-on members; go_on 1; exit 0";
  testing::internal::CaptureStderr();
  EXPECT_EQ(launched(goes_on, killed), 0);
  EXPECT_EQ(launched(killed, goes_on), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* rank : {"rank 0", "rank 1"}) EXPECT_NE(said.find(rank), std::string::npos) << said;
  EXPECT_NE(said.find("was killed by signal 9; 1 rank goes on from step 5\n"), std::string::npos) << said;
}

// Who still waits for the others to come would wait for it.
TEST(Launch, ALossBeforeAllHaveMetEndsTheRun) {
  EXPECT_EQ(launched("there ended members; exit 75", "sign_in; kill -9 $$"), resumable);
}

// Its result is not written, though all others have done their part.
TEST(Launch, AFirstRankThatIsKilledAtTheEndLeavesTheRestToAResume) {
  EXPECT_EQ(launched("both_signed_in; kill -9 $$", "both_signed_in; there goes-on members; exit 0"), resumable);
}

// A front whose trainer was killed no longer passes a signal on: it ends by it.
TEST(Launch, AStopThatComesToOneThatWasJustKilledStopsTheOther) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(launched("trap '' TERM; both_signed_in; there goes-on members; go_on 1; exit 75",
                     "both_signed_in; kill -TERM $PPID; sleep 30"),
            resumable);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("1 rank goes on from step 5"), std::string::npos);
}

TEST(Launch, AnErrorOfItsOwnIsTheRuns) {
  EXPECT_EQ(launched("both_signed_in; there ended members; exit 75", "both_signed_in; exit 4"), 4);
}

// Not before the other has seen it sign in: a mark goes with the process.
const std::string killed_once_it_is_told = "both_signed_in; there . run; kill -9 $$";
// Not before the other has read of the group without it, which is replaced at once.
const std::string comes_back = "there . step-1; sign_in; there . step-2; exit 0";

TEST(Launch, OneThatIsStartedAgainIsTakenInOnceItIsReady) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(launched("both_signed_in; tell_run; there '^1 goes-on 0$' members; go_on 1; "
                     "there '^2 goes-on 0 1$' members; go_on 2; exit 0",
                     killed_once_it_is_told, comes_back, 1),
            0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("was killed by signal 9; 1 rank goes on from step 5\n"), std::string::npos) << said;
  EXPECT_NE(said.find("came back; 2 ranks go on from step 5\n"), std::string::npos) << said;
}

// It takes the last place: the first of those that held the state before stays the first.
TEST(Launch, RankZeroThatIsStartedAgainIsNotTheFirst) {
  EXPECT_EQ(launched(killed_once_it_is_told,
                     "both_signed_in; tell_run; there '^1 goes-on 1$' members; go_on 1; "
                     "there '^2 goes-on 1 0$' members; go_on 2; exit 0",
                     comes_back, 1),
            0);
}

TEST(Launch, OneThatEndsBeforeItIsTakenInChangesNothing) {
  for (const auto& [again, code] : {std::pair("exit 2", "2"), std::pair("kill -9 $$", "137")}) {
    const bool was_killed = std::string(code) == "137";
    testing::internal::CaptureStderr();
    EXPECT_EQ(launched("both_signed_in; tell_run; go_on 1; there '^" + std::string(was_killed ? "3" : "2") +
                           " goes-on 0$' members; go_on 2; go_on 3; exit 0",
                       killed_once_it_is_told, again, 2),
              0);
    const std::string said = testing::internal::GetCapturedStderr();
    const std::string line = "rank 1 was started again, and ended with exit code " + std::string(code);
    const size_t first = said.find(line);
    EXPECT_NE(first, std::string::npos) << said;
    // What was killed may not be killed again; an error comes again.
    EXPECT_EQ(said.find(line, first + 1) != std::string::npos, was_killed) << said;
  }
}

TEST(Launch, OneThatIsNotReadyWhenTheRunEndsIsEnded) {
  EXPECT_EQ(launched("both_signed_in; tell_run; there goes-on members; go_on 1; exit 0", killed_once_it_is_told,
                     "sleep 600", 1),
            0);
}

// It holds no state.
TEST(Launch, OneThatIsNotTakenInYetDoesNotGoOnAlone) {
  EXPECT_EQ(launched("both_signed_in; tell_run; there '^2 goes-on 0 1$' members; kill -9 $$", killed_once_it_is_told,
                     "sign_in; there ended members; exit 75", 1),
            resumable);
}

}  // namespace
}  // namespace headroom
