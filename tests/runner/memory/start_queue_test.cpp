#include "memory/start_queue.hpp"

#include <gmock/gmock.h>
#include <memory>

#include "error.hpp"
#include "reservation_trial.hpp"

namespace headroom {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// A machine of 24 GiB whose free memory a test sets, and time that passes only while somebody sleeps.
class StartQueueTest : public ReservationTrial {
 protected:
  void SetUp() override {
    ReservationTrial::SetUp();
    file("proc/self/status", "RssAnon: 0 kB\nRssShmem: 0 kB\n");
    available(10 * gib);
    request_.name = "ours";
    request_.say = [this](const std::string& line) { lines_.push_back(line); };
  }
  void available(int64_t bytes) {
    file("proc/meminfo", "MemTotal: 25165824 kB\nMemAvailable: " + std::to_string(bytes / 1024) + " kB\n");
  }
  std::optional<MemoryGrant> wait() { return wait_for_memory(request_, clock_, root_.string()); }
  bool wait_for_more(int64_t too_little_bytes) {
    return wait_for_more_memory(request_, too_little_bytes, clock_, root_.string());
  }
  std::string refusal() {
    try {
      wait();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::does_not_fit);
      return error.what();
    }
    ADD_FAILURE() << "it was let in";
    return "";
  }
  // What this process has reserved, as another one sees it; -1: nothing.
  static int64_t reserved_as_seen() {
    Child child([](Child& self) {
      const auto runs = other_runs();
      self.tell(runs.empty() ? -1 : runs[0].reserved_bytes);
    });
    return child.hear();
  }

  MemoryRequest request_;
  std::vector<std::string> lines_;
  double seconds_ = 1000;
  std::function<void()> while_asleep_;
  const WaitClock clock_{[this] { return seconds_; },
                         [this](double seconds) {
                           seconds_ += seconds;
                           if (while_asleep_) while_asleep_();
                         }};
};

TEST_F(StartQueueTest, WhatFitsStartsAtOnce) {
  request_.needed_bytes = 3 * gib;
  {
    const auto grant = wait();
    ASSERT_TRUE(grant);
    EXPECT_EQ(grant->limit.bytes, 9 * gib);
    EXPECT_EQ(grant->reservation.reserved_bytes(), 3 * gib);
    EXPECT_EQ(reserved_as_seen(), 3 * gib);
  }
  EXPECT_EQ(reserved_as_seen(), -1);
  EXPECT_EQ(seconds_, 1000);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(StartQueueTest, AnUnknownNeedReservesWhatItHoldsAndLeavesTheRest) {
  file("proc/self/status", "RssAnon: 65536 kB\nRssShmem: 0 kB\n");
  const auto grant = wait();
  EXPECT_GT(grant->limit.bytes, 9 * gib);
  EXPECT_EQ(reserved_as_seen(), 64 << 20) << "two such runs may start at the same moment";
}

TEST_F(StartQueueTest, AnUnknownNeedIsNoLessThanWhatItHolds) {
  file("proc/self/status", "RssAnon: 65536 kB\nRssShmem: 0 kB\n");
  Child other([](Child& self) { hold(self, "other", 24 * gib); });
  other.hear();
  EXPECT_THAT(refusal(), HasSubstr("the run needs 64.0 MiB, and memory.limit gives it 1 B (0.9 of"));
  request_.wait_seconds = 60;
  while_asleep_ = [&] {
    if (seconds_ > 1020 && other.id() > 0) other.kill();
  };
  EXPECT_GT(wait()->limit.bytes, 9 * gib);
  request_.limit = "1000";
  EXPECT_THAT(refusal(), HasSubstr("gives it 1000 B (as told): raise the limit"));
}

TEST_F(StartQueueTest, ItStartsWhenTheMemoryIsThere) {
  request_.needed_bytes = 12 * gib;
  request_.wait_seconds = 600;
  while_asleep_ = [this] {
    if (seconds_ > 1200) available(20 * gib);
  };
  const auto grant = wait();
  EXPECT_EQ(grant->limit.bytes, 18 * gib);
  EXPECT_GT(seconds_, 1200);
  EXPECT_LT(seconds_, 1210);
  EXPECT_THAT(lines_, SizeIs(4)) << "at once, then once a minute";
  EXPECT_THAT(lines_, Each(StartsWith("waiting for memory: needs 12.0 GiB, 9.0 GiB free")));
}

TEST_F(StartQueueTest, TimeRunsOut) {
  request_.needed_bytes = 12 * gib;
  request_.wait_seconds = 90;
  EXPECT_THAT(refusal(), AllOf(StartsWith("[memory] the run needs 12.0 GiB, and memory.limit gives it 9.0 GiB (0.9 of "
                                          "the 10.0 GiB of room in system)"),
                               HasSubstr("memory.wait is over")));
  EXPECT_NEAR(seconds_, 1090, 1e-6);
  EXPECT_EQ(reserved_as_seen(), -1) << "its place in the queue is free again";
}

TEST_F(StartQueueTest, WhoWaitedInVainForAllItWantsStartsWithWhatItNeeds) {
  request_.needed_bytes = 3 * gib;
  request_.wanted_bytes = 12 * gib;
  request_.wait_seconds = 90;
  const auto grant = wait();
  ASSERT_TRUE(grant);
  EXPECT_NEAR(seconds_, 1090, 1e-6);
  EXPECT_EQ(grant->limit.bytes, 9 * gib);
  EXPECT_EQ(grant->reservation.reserved_bytes(), 9 * gib);
  EXPECT_THAT(lines_, Each(StartsWith("waiting for memory: needs 12.0 GiB, 9.0 GiB free")));
}

TEST_F(StartQueueTest, WithoutWaitingTheAdviceIsToWait) {
  request_.needed_bytes = 12 * gib;
  EXPECT_THAT(refusal(), HasSubstr("memory.wait = \"10 min\""));
  EXPECT_EQ(seconds_, 1000);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(StartQueueTest, WhatWillNeverFitDoesNotWait) {
  request_.needed_bytes = 23 * gib;
  request_.wait_seconds = 600;
  EXPECT_THAT(refusal(), HasSubstr("it will never fit 0.9 of the 24.0 GiB of system"));
  request_.limit = std::to_string(4 * gib);
  request_.needed_bytes = 5 * gib;
  EXPECT_THAT(refusal(), HasSubstr("gives it 4.0 GiB (as told): raise the limit or make the run smaller"));
  EXPECT_EQ(seconds_, 1000);
}

// A probe does not know what it needs, only that there was too little.
TEST_F(StartQueueTest, AnUnknownNeedWaitsUntilThereIsClearlyMore) {
  request_.wait_seconds = 600;
  while_asleep_ = [this] {
    if (seconds_ > 1100) available(10 * gib + 1);
    if (seconds_ > 1200) available(13 * gib);
  };
  EXPECT_TRUE(wait_for_more(9 * gib));
  EXPECT_GT(seconds_, 1200);
  EXPECT_LT(seconds_, 1210);
  EXPECT_EQ(reserved_as_seen(), -1);
  while_asleep_ = {};
  const double began = seconds_;
  EXPECT_FALSE(wait_for_more(13 * gib / 10 * 9)) << "the time is over";
  EXPECT_NEAR(seconds_, began + 600, 1e-6);
}

TEST_F(StartQueueTest, AnUnknownNeedWaitsForTheRunsThatReservedEverything) {
  Child other([](Child& self) { hold(self, "other", 24 * gib); });
  other.hear();
  request_.wait_seconds = 60;
  while_asleep_ = [&] {
    if (seconds_ > 1020 && other.id() > 0) other.kill();
  };
  EXPECT_TRUE(wait_for_more(1));
  EXPECT_GT(seconds_, 1020);
}

TEST_F(StartQueueTest, WhereOthersHoldNextToNothingAnUnknownNeedDoesNotWait) {
  request_.wait_seconds = 600;
  available(24 * gib);
  EXPECT_FALSE(wait_for_more(24 * gib / 10 * 9));
  available(23 * gib);
  EXPECT_FALSE(wait_for_more(23 * gib / 10 * 9)) << "the system itself holds some";
  EXPECT_EQ(seconds_, 1000);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(StartQueueTest, ItCanBeCancelled) {
  request_.needed_bytes = 12 * gib;
  request_.wait_seconds = 600;
  request_.cancelled = [this] { return seconds_ > 1005; };
  EXPECT_FALSE(wait());
  EXPECT_LT(seconds_, 1005.2) << "asked ten times a second";
  EXPECT_EQ(reserved_as_seen(), -1);
}

TEST_F(StartQueueTest, AnExplicitLimitAsksForRoomOnlyWhereItMayWait) {
  request_.limit = std::to_string(16 * gib);
  request_.needed_bytes = 12 * gib;
  const auto grant = wait();
  EXPECT_EQ(grant->limit.bytes, 16 * gib);
  EXPECT_THAT(grant->limit.rule, HasSubstr("above the 10.0 GiB that are free in system now"));
  request_.wait_seconds = 60;
  EXPECT_THAT(refusal(), HasSubstr("memory.wait is over"));
}

TEST_F(StartQueueTest, WithoutALimitNothingIsAsked) {
  request_.limit = "off";
  request_.needed_bytes = 100 * gib;
  request_.wait_seconds = 60;
  const auto grant = wait();
  EXPECT_EQ(grant->limit.bytes, std::nullopt);
  EXPECT_EQ(reserved_as_seen(), 100 * gib) << "others should know all the same";
}

TEST_F(StartQueueTest, WhatOthersHaveReservedIsNotFree) {
  Child other([](Child& self) { hold(self, "other", 8 * gib); });
  other.hear();
  request_.needed_bytes = 3 * gib;
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr(" GiB reserved by other runs)"), HasSubstr("1 other run with 8.0 GiB reserved"),
                    HasSubstr("other, pid " + std::to_string(other.id()) + ": 8.0 GiB")));
  request_.wait_seconds = 60;
  while_asleep_ = [&] {
    if (seconds_ > 1020 && other.id() > 0) other.kill();
  };
  EXPECT_EQ(wait()->limit.bytes, 9 * gib);
}

TEST_F(StartQueueTest, AStrangersClaimLeavesHalfOfTheRoom) {
  std::filesystem::create_directories(folder_);
  const std::string claim = "headroom-reservation 1\npid 7\nnamespace 1\nreserved " + std::to_string(int64_t{1} << 62) +
                            "\nheld 0\nwaiting 0\nname liar\n";
  Child stranger([&](Child& self) { write_locked(self, "run-1", claim); });
  stranger.hear();
  request_.needed_bytes = 3 * gib;
  const auto grant = wait();
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->limit.bytes, 4 * gib);
  EXPECT_EQ(grant->limit.rule,
            "0.9 of the 10.0 GiB of room in system, less 5.0 GiB reserved by other runs, who claim 4.0 EiB");
  request_.needed_bytes = 5 * gib;
  EXPECT_THAT(refusal(), HasSubstr("; they claim 4.0 EiB of system, of which 5.0 GiB count"));
}

TEST_F(StartQueueTest, WhoWaitsLongerComesFirst) {
  Child other([](Child& self) {
    const Reservation place = Reservation::queue("large", 8 * gib);
    self.tell();
    self.hear();
  });
  other.hear();
  request_.needed_bytes = 3 * gib;
  request_.wait_seconds = 60;
  EXPECT_THAT(refusal(), HasSubstr("1 run in front waiting for 8.0 GiB (large, pid "));
  available(20 * gib);
  EXPECT_TRUE(wait()) << "what the other does not need is free";
}

TEST_F(StartQueueTest, WhoWaitsShorterDoesNotHoldUp) {
  std::unique_ptr<Child> younger;
  request_.needed_bytes = 12 * gib;
  request_.wait_seconds = 60;
  while_asleep_ = [&] {
    if (younger || seconds_ < 1010) return;
    younger = std::make_unique<Child>([](Child& self) {
      const Reservation place = Reservation::queue("younger", 8 * gib);
      self.tell();
      self.hear();
    });
    younger->hear();
    available(14 * gib);
  };
  EXPECT_EQ(wait()->reservation.reserved_bytes(), 12 * gib);
}

}  // namespace
}  // namespace headroom
