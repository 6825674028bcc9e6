// Ranks that are shell scripts: what their launcher tells them when one ends, and the exit code of the run.
#include "ranks/launch.hpp"

#include <gtest/gtest.h>
#include <string>

#include "error.hpp"

namespace headroom {
namespace {

constexpr int resumable = static_cast<int>(Exit::resumable);

// Two ranks of a run that goes on with one. The files are Roster's.
int launched(const std::string& first, const std::string& second) {
  const std::string script = R"(
here=$(dirname "$HEADROOM_RANKS_STORE")
sign_in() { echo $$ > "$here/trainer-$HEADROOM_RANK"; }
there() { for try in $(seq 3000); do if grep -qs -e "$1" "$here/$2"; then return; fi; sleep 0.01; done; exit 99; }
both_signed_in() { sign_in; there . trainer-0; there . trainer-1; }
go_on() { echo 5 > "$here/step-$1"; }
if [ "$HEADROOM_RANK" = 0 ]; then )" +
                             first + "; else " + second + "; fi";
  return launch_ranks("/bin/sh", {"-c", script}, 2, /*least=*/1);
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

}  // namespace
}  // namespace headroom
