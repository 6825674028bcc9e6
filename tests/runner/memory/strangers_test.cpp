// Runs of another user, and of another pid namespace, as in a container that shares the machine's /tmp.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/stat.h>

#include "reservation_trial.hpp"

namespace headroom {
namespace {

using StrangersTest = ReservationTrial;

TEST_F(StrangersTest, RunsSeeEachOtherAcrossPidNamespaces) {
  Child outer([](Child& self) {
    const bool made = ::unshare(CLONE_NEWPID) == 0;
    self.tell(made);
    if (!made) return;
    Child inner([&](Child&) {
      self.tell(::getpid());
      Reservation reservation = Reservation::claim("inside", gib);
      self.tell(static_cast<int64_t>(other_runs().size()));
      self.hear();
    });
    inner.wait();
  });
  if (outer.hear() == 0) GTEST_SKIP() << "no pid namespace can be made here";
  const int64_t pid_inside = outer.hear();
  EXPECT_EQ(pid_inside, 1);
  EXPECT_EQ(outer.hear(), 0) << "it is alone so far";
  const auto runs = other_runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].pid, 1);
  EXPECT_LT(runs[0].held_bytes, 64 * mib) << "as it wrote, not what pid 1 of this namespace holds";
  EXPECT_GT(runs[0].held_bytes, 0);
}

TEST_F(StrangersTest, AnotherUserSeesWhatItCannotTouch) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_TRUE(std::filesystem::create_directory(folder_));
  ::chmod(root_.c_str(), 0755);
  ::chmod(folder_.c_str(), 01777);
  const Reservation ours = Reservation::claim("ours", gib);
  Child dead([](Child& self) { hold(self, "dead", gib); });
  dead.hear();
  dead.kill();
  Child stranger([](Child& self) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return;
    const auto seen = other_runs();
    self.tell(static_cast<int64_t>(seen.size()));
    self.tell(!seen.empty() && !seen[0].is_trusted);
    const Reservation reservation = Reservation::claim("stranger", 2 * gib);
    self.tell(reservation.shared());
    self.hear();
  });
  EXPECT_EQ(stranger.hear(), 1) << "ours, and not the dead one";
  EXPECT_TRUE(stranger.hear()) << "to them we are the strangers";
  EXPECT_TRUE(stranger.hear());
  EXPECT_EQ(entries(), 3u) << "a stranger cannot clear up after us";
  const auto runs = other_runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].name, "stranger");
  EXPECT_FALSE(runs[0].is_trusted) << "its process is that user's, its figures are its own";
  EXPECT_GT(runs[0].held_bytes, 0);
  EXPECT_EQ(entries(), 2u);
}

}  // namespace
}  // namespace headroom
