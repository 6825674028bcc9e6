#include "memory/reservations.hpp"

#include <gmock/gmock.h>
#include <list>
#include <sys/mman.h>
#include <sys/stat.h>

#include "error.hpp"
#include "reservation_trial.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using ReservationsTest = ReservationTrial;

TEST_F(ReservationsTest, RunsSeeEachOther) {
  EXPECT_THAT(other_runs(), IsEmpty());
  EXPECT_FALSE(fs::exists(folder_)) << "looking makes nothing";
  Child child([](Child& self) {
    Reservation reservation = Reservation::claim("quick_demo", gib);
    self.tell();
    self.hear();
    ::mmap(nullptr, 64 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    reservation.update(2 * gib);
    self.tell();
    self.hear();
    reservation = Reservation();
    self.tell();
    self.hear();
  });
  child.hear();
  auto runs = other_runs();
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0].name, "quick_demo");
  EXPECT_EQ(runs[0].pid, child.id());
  EXPECT_EQ(runs[0].reserved_bytes, gib);
  EXPECT_FALSE(runs[0].waits());
  EXPECT_GT(runs[0].held_bytes, 0);
  EXPECT_EQ(reserved_by_others(), gib - runs[0].held_bytes);

  child.tell();
  child.hear();
  runs = other_runs();
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0].reserved_bytes, 2 * gib);
  EXPECT_GE(runs[0].held_bytes, 63 * mib) << "what it holds is no longer outstanding";
  child.tell();
  child.hear();
  EXPECT_THAT(other_runs(), IsEmpty());
  EXPECT_EQ(entries(), 0u);
}

TEST_F(ReservationsTest, AKilledRunReservesNothing) {
  Child child([](Child& self) { hold(self, "killed", gib); });
  child.hear();
  ASSERT_THAT(other_runs(), SizeIs(1));
  EXPECT_TRUE(WIFSIGNALED(child.kill()));
  EXPECT_EQ(entries(), 1u);
  EXPECT_THAT(other_runs(), IsEmpty());
  EXPECT_EQ(entries(), 0u) << "whoever looks next clears up";
}

TEST_F(ReservationsTest, ChildrenOfAKilledRunDoNotKeepItsReservation) {
  Child run([](Child& self) {
    const Reservation reservation = Reservation::claim("forked", gib);
    Child reader([&](Child&) { self.hear(); });  // has the lock, until the test speaks
    self.tell();
    ::pause();
  });
  run.hear();
  ASSERT_THAT(other_runs(), SizeIs(1));
  run.kill();
  EXPECT_THAT(other_runs(), IsEmpty());
  EXPECT_EQ(entries(), 1u) << "the child is still there";
  run.tell();
}

TEST_F(ReservationsTest, AForkedChildReleasesNothing) {
  Child run([](Child& self) {
    Reservation reservation = Reservation::claim("parent", gib);
    Child copy([&](Child&) {
      reservation.update(5 * gib);
      const Reservation gone = std::move(reservation);
    });
    copy.wait();
    self.tell();
    self.hear();
  });
  run.hear();
  ASSERT_THAT(other_runs(), SizeIs(1));
  EXPECT_EQ(other_runs()[0].reserved_bytes, gib);
}

// 10 GiB are enough for three runs of 3 GiB; eight start at once.
TEST_F(ReservationsTest, RunsThatStartAtOnceShareWhatThereIs) {
  for (int round = 0; round < 10; ++round) {
    std::list<Child> children;
    for (int i = 0; i < 8; ++i) {
      children.emplace_back([i](Child& self) {
        self.hear();
        Reservation place = Reservation::queue("run" + std::to_string(i), 3 * gib);
        self.tell(place.take([](const std::vector<OtherRun>& ahead) {
          int64_t left = 10 * gib;
          for (const OtherRun& run : ahead) left -= run.reserved_bytes;
          return left >= 3 * gib ? std::optional(3 * gib) : std::nullopt;
        }));
        self.hear();
      });
    }
    for (const Child& child : children) child.tell();
    int64_t started = 0;
    for (const Child& child : children) started += child.hear();
    EXPECT_EQ(started, 3);
  }
}

TEST_F(ReservationsTest, WhoWaitsLongerIsAhead) {
  Child first([](Child& self) {
    const Reservation place = Reservation::queue("first", 2 * gib);
    self.tell();
    self.hear();
  });
  first.hear();
  Reservation second = Reservation::queue("second", gib);
  Child third([](Child& self) {
    const Reservation place = Reservation::queue("third", 4 * gib);
    self.tell();
    self.hear();
  });
  third.hear();
  std::vector<OtherRun> ahead;
  const auto look = [&](const std::vector<OtherRun>& runs) {
    ahead = runs;
    return std::optional<int64_t>();
  };
  EXPECT_FALSE(second.take(look));
  ASSERT_THAT(ahead, SizeIs(1));
  EXPECT_EQ(ahead[0].name, "first");
  EXPECT_TRUE(ahead[0].waits());
  first.kill();
  EXPECT_FALSE(second.take(look));
  EXPECT_THAT(ahead, IsEmpty());
  ASSERT_THAT(other_runs(), SizeIs(1));
  EXPECT_EQ(other_runs()[0].name, "third");
}

TEST_F(ReservationsTest, AnEntryThatIsClearedAwayComesBack) {
  Child child([](Child& self) {
    Reservation reservation = Reservation::claim("cleared", gib);
    self.tell();
    self.hear();
    reservation.update(gib);
    self.tell();
    self.hear();
  });
  child.hear();
  fs::remove_all(folder_);
  EXPECT_THAT(other_runs(), IsEmpty());
  child.tell();
  child.hear();
  EXPECT_THAT(other_runs(), SizeIs(1));
}

TEST_F(ReservationsTest, OthersCanReadItWhateverTheUmask) {
  const mode_t before = ::umask(077);
  const Reservation reservation = Reservation::claim("mine", gib);
  ::umask(before);
  const fs::path entry = fs::directory_iterator(folder_)->path();
  EXPECT_EQ(fs::status(entry).permissions() & fs::perms::mask, fs::perms(0644));
}

TEST_F(ReservationsTest, LinksPipesAndRubbishAreNeitherFollowedNorCounted) {
  fs::create_directories(folder_);
  file("elsewhere/precious", "untouched");
  fs::create_symlink(root_ / "elsewhere/precious", folder_ / "run-1-link");
  fs::create_symlink(root_ / "elsewhere", folder_ / "run-2-folder");
  ASSERT_EQ(::mkfifo((folder_ / "run-3-pipe").c_str(), 0644), 0);
  file("reservations/run-4-folder/inside", "x");
  file("reservations/unrelated", "headroom-reservation 1\n");
  file("reservations/run-5-stale", "headroom-reservation 1\npid 1\n");
  EXPECT_THAT(other_runs(), IsEmpty());
  const Reservation reservation = Reservation::claim("mine", gib);
  EXPECT_TRUE(reservation.shared());
  EXPECT_TRUE(fs::exists(root_ / "elsewhere/precious"));
  EXPECT_TRUE(fs::exists(folder_ / "unrelated"));
  EXPECT_FALSE(fs::exists(folder_ / "run-5-stale"));
}

TEST_F(ReservationsTest, WhatOthersWriteIsNotBelieved) {
  fs::create_directories(folder_);
  const std::string head = "headroom-reservation 1\n", large = std::to_string(INT64_MAX);
  const std::string elsewhere = "namespace 1\nheld 5\nwaiting 0\n";
  for (const std::string& text :
       {std::string(), std::string(100000, 'x'), head, std::string("pid 1\nreserved 5\n") + elsewhere,
        head + elsewhere + "pid 0\nreserved 5\n", head + elsewhere + "pid 7\nreserved -5\n",
        head + elsewhere + "pid 99999999999\nreserved 5\n", head + elsewhere + "pid 7\nreserved " + large + "0\n"}) {
    Child child([&](Child& self) { write_locked(self, "run-x", text); });
    child.hear();
    EXPECT_THAT(other_runs(), IsEmpty()) << text.substr(0, 200);
  }
  const std::string most = head + elsewhere + "pid 7\nreserved " + large + "\nname a\x1b[2Jb\xc2\x9b\nscope 1:1\n";
  Child one([&](Child& self) { write_locked(self, "run-1", most); });
  Child two([&](Child& self) { write_locked(self, "run-2", most); });
  one.hear();
  two.hear();
  ASSERT_THAT(other_runs(), SizeIs(2));
  EXPECT_EQ(other_runs()[0].name, "a?[2Jb??");
  EXPECT_EQ(reserved_by_others(), INT64_MAX);
}

// In another pid namespace pid 1 is somebody else: what the run wrote about itself has to do.
TEST_F(ReservationsTest, APidOfAnotherNamespaceIsNotLookedUp) {
  fs::create_directories(folder_);
  const auto entry = [](const std::string& space) {
    return "headroom-reservation 1\npid " + std::to_string(::getpid()) + "\nnamespace " + space +
           "\nreserved 1000\nheld 400\nwaiting 0\nname inside\n";
  };
  Child child([&](Child& self) { write_locked(self, "run-1", entry("17")); });
  child.hear();
  ASSERT_THAT(other_runs(), SizeIs(1)) << "not taken for this process, which has that pid here";
  EXPECT_EQ(other_runs()[0].held_bytes, 400);
  EXPECT_FALSE(other_runs()[0].is_trusted);
  EXPECT_EQ(reserved_by_others(), 600);
}

TEST_F(ReservationsTest, ARunCountsInTheRoomsItShares) {
  Rooms rooms;
  rooms.rooms = {Room{.name = "ours", .scope = "1:7", .bound_bytes = 1000},
                 Room{.name = "system", .scope = "machine", .bound_bytes = 1000}, Room{.name = "RLIMIT_DATA"}};
  const OtherRun beside{.name = "beside", .pid = 1, .reserved_bytes = 100, .held_bytes = 30, .scopes = {"1:7", "1:1"}};
  const OtherRun apart{.name = "apart", .pid = 2, .reserved_bytes = 50, .held_bytes = 80, .scopes = {"1:8", "1:1"}};
  const OtherRun waiting{.name = "waits", .pid = 3, .reserved_bytes = 20, .waiting_since_ns = 1, .scopes = {"1:8"}};
  set_aside(rooms, {beside, apart, waiting});
  EXPECT_EQ(rooms.rooms[0].reserved_bytes, 70);
  EXPECT_EQ(rooms.rooms[1].reserved_bytes, 90) << "who holds more than it reserved gives nothing back";
  EXPECT_EQ(rooms.rooms[2].reserved_bytes, 0);
  set_aside(rooms, {});
  EXPECT_EQ(rooms.rooms[0].reserved_bytes, 0);
}

TEST_F(ReservationsTest, WhatOthersHoldIsFreeOnceTheyHaveEnded) {
  Rooms rooms;
  rooms.rooms = {Room{.name = "ours", .scope = "1:7", .bound_bytes = 1000, .room_bytes = 300},
                 Room{.name = "system", .scope = "machine", .bound_bytes = 5000, .room_bytes = 3000},
                 Room{.name = "RLIMIT_DATA", .bound_bytes = 700, .room_bytes = 600}};
  const OtherRun beside{.name = "beside", .pid = 1, .reserved_bytes = 900, .held_bytes = 400, .scopes = {"1:7"}};
  const OtherRun liar{.name = "liar", .pid = 2, .held_bytes = INT64_MAX, .is_trusted = false};
  set_free(rooms, {beside});
  EXPECT_EQ(rooms.rooms[0].room_bytes, 700);
  EXPECT_EQ(rooms.rooms[1].room_bytes, 3400);
  EXPECT_EQ(rooms.rooms[2].room_bytes, 600);
  set_free(rooms, {liar});
  EXPECT_EQ(rooms.rooms[0].room_bytes, 700);
  EXPECT_EQ(rooms.rooms[1].room_bytes, 5000);
}

TEST_F(ReservationsTest, WhatNobodyConfirmsSetsAsideHalfOfARoomAtMost) {
  Rooms rooms;
  rooms.rooms = {Room{.name = "ours", .scope = "1:7", .bound_bytes = 1000, .room_bytes = 800},
                 Room{.name = "system", .scope = "machine", .bound_bytes = 5000, .room_bytes = 3000}};
  OtherRun ours{.name = "ours", .pid = 1, .reserved_bytes = 100};
  const OtherRun liar{.name = "liar", .pid = 2, .reserved_bytes = INT64_MAX, .scopes = {"1:7"}, .is_trusted = false};
  set_aside(rooms, {ours, liar, liar});
  EXPECT_EQ(rooms.rooms[0].reserved_bytes, 400);
  EXPECT_EQ(rooms.rooms[1].reserved_bytes, 100 + 1500);
  EXPECT_EQ(rooms.rooms[1].claimed_bytes, INT64_MAX);
  const OtherRun modest{.name = "m", .pid = 3, .reserved_bytes = 70, .scopes = {"1:7"}, .is_trusted = false};
  set_aside(rooms, {modest, modest});
  EXPECT_EQ(rooms.rooms[0].reserved_bytes, 140);
  EXPECT_EQ(rooms.rooms[0].claimed_bytes, 140);
  ours.reserved_bytes = INT64_MAX;
  set_aside(rooms, {ours, ours});
  EXPECT_EQ(rooms.rooms[1].reserved_bytes, 5000) << "one's own runs cannot need more than there is";
}

TEST_F(ReservationsTest, AFileOfAnotherUserMustNameAProcessOfThatUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  fs::create_directories(folder_);
  struct stat space {};
  ASSERT_EQ(::stat("/proc/self/ns/pid", &space), 0);
  const auto entry = [&](int64_t pid) {
    return "headroom-reservation 1\npid " + std::to_string(pid) + "\nnamespace " + std::to_string(space.st_ino) +
           "\nreserved 1000\nheld 400\nwaiting 0\nname x\n";
  };
  Child child([&](Child& self) { write_locked(self, "run-1", entry(::getpid())); });
  child.hear();
  ASSERT_THAT(other_runs(), SizeIs(1));
  EXPECT_TRUE(other_runs()[0].is_trusted);
  ASSERT_EQ(::chown((folder_ / "run-1").c_str(), 65534, 65534), 0);
  EXPECT_THAT(other_runs(), IsEmpty()) << "the process is not that user's";
}

TEST_F(ReservationsTest, AFolderThatCannotBeUsedIsAnError) {
  file("reservations", "a file");
  for (const auto& use : {+[] { Reservation::claim("x", 1); }, +[] { other_runs(); }}) {
    try {
      use();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::cannot_write);
      EXPECT_THAT(error.what(), HasSubstr("HEADROOM_RESERVATIONS=" + folder_.string() + " cannot be used: "));
    }
  }
}

TEST_F(ReservationsTest, WhoeverHoldsTheFolderHoldsNobodyUp) {
  fs::create_directories(folder_);
  Child child([&](Child& self) {
    ::flock(::open(folder_.c_str(), O_RDONLY), LOCK_EX);
    self.tell();
    self.hear();
  });
  child.hear();
  EXPECT_TRUE(Reservation::claim("mine", gib).shared());
}

class SharedFolderTest : public ReservationTrial {
 protected:
  fs::path place(const char* parent) const { return root_ / parent / "headroom-reservations"; }
  // Which of two places is taken; "" for none.
  std::string taken() const {
    auto folder = ReservationFolder::open_in({(root_ / "first").string(), (root_ / "second").string()}, /*make=*/true);
    if (!folder) return "";
    std::string name;
    const Descriptor entry = folder->create(name);
    for (const char* parent : {"first", "second"}) {
      if (fs::exists(place(parent) / name)) return parent;
    }
    return "elsewhere";
  }
  void SetUp() override {
    ReservationTrial::SetUp();
    for (const char* parent : {"first", "second", "trap"}) fs::create_directories(root_ / parent);
  }
};

TEST_F(SharedFolderTest, IsMadeForAllUsers) {
  const mode_t before = ::umask(077);
  EXPECT_EQ(taken(), "first");
  ::umask(before);
  EXPECT_EQ(fs::status(place("first")).permissions() & fs::perms::mask, fs::perms(01777));
  EXPECT_EQ(taken(), "first") << "and found again";
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "first"), {}), 1) << "nothing is left beside it";
}

TEST_F(SharedFolderTest, ALinkInItsPlaceIsPassedOver) {
  fs::permissions(root_ / "trap", fs::perms(01777));
  fs::create_directory_symlink(root_ / "trap", place("first"));
  EXPECT_EQ(taken(), "second");
  EXPECT_TRUE(fs::is_empty(root_ / "trap"));
}

TEST_F(SharedFolderTest, OneWhereOthersCouldRemoveEntriesIsPassedOver) {
  fs::create_directory(place("first"));
  fs::permissions(place("first"), fs::perms(0777));
  EXPECT_EQ(taken(), "second");
  fs::permissions(place("first"), fs::perms(01755));
  EXPECT_EQ(taken(), "second") << "and one that is not for all";
}

TEST_F(SharedFolderTest, WithoutAnyARunGoesOnAlone) {
  file("first/headroom-reservations", "a file");
  fs::remove(root_ / "second");
  EXPECT_EQ(taken(), "");
}

}  // namespace
}  // namespace headroom
