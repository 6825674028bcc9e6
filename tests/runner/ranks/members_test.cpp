#include "ranks/members.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <thread>
#include <unistd.h>

namespace headroom {
namespace {

namespace fs = std::filesystem;

class RosterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  Roster roster() const { return Roster(folder_); }

  fs::path folder_;
  const std::function<bool()> never = [] { return false; };
};

TEST_F(RosterTest, WhatTheLauncherTellsIsRead) {
  EXPECT_EQ(roster().read().group, 0);
  roster().tell({.group = 2, .ranks = {0, 2, 3}});
  const Members members = roster().read();
  EXPECT_EQ(members.group, 2);
  EXPECT_EQ(members.ranks, (std::vector<int>{0, 2, 3}));
  EXPECT_FALSE(members.ended);
  roster().tell({.group = 3, .ranks = {2}, .ended = true});
  EXPECT_TRUE(roster().read().ended);
}

TEST_F(RosterTest, ALauncherHearsWhoIsThereAndFromWhereTheyGoOn) {
  EXPECT_EQ(roster().process_of(1), std::nullopt);
  roster().sign_in(1);
  EXPECT_EQ(roster().process_of(1), getpid());
  EXPECT_EQ(roster().step_of(1), std::nullopt);
  roster().go_on(1, 120);
  EXPECT_EQ(roster().step_of(1), 120);
  EXPECT_EQ(roster().step_of(2), std::nullopt);
}

TEST_F(RosterTest, AGroupIsThereOnceAllOfItHaveCome) {
  roster().tell({.group = 1, .ranks = {0, 2}});
  std::thread other([&] {
    const auto joined = next_group(roster(), 0, 2, never);
    EXPECT_TRUE(joined.has_value());
  });
  const auto joined = next_group(roster(), 0, 0, never);
  other.join();
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->ranks, (std::vector<int>{0, 2}));
}

// One of those that were left is lost while the first waits for it.
TEST_F(RosterTest, WhoWaitsForOneThatIsLostTooGoesOnToTheNextGroup) {
  roster().tell({.group = 1, .ranks = {0, 2}});
  std::thread launcher([&] {
    while (!fs::exists(folder_ / "came-1-0")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    roster().tell({.group = 2, .ranks = {0}});
  });
  const auto joined = next_group(roster(), 0, 0, never);
  launcher.join();
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->group, 2);
}

TEST_F(RosterTest, WhereTheRunDoesNotGoOnNobodyWaits) {
  roster().tell({.group = 1, .ranks = {0}, .ended = true});
  EXPECT_EQ(next_group(roster(), 0, 0, never), std::nullopt);
  // Nor who is taken for lost.
  roster().tell({.group = 2, .ranks = {1}});
  EXPECT_EQ(next_group(roster(), 0, 0, never), std::nullopt);
  // Nor, for long, a run that is to stop.
  roster().tell({.group = 3, .ranks = {0, 1}});
  EXPECT_EQ(next_group(roster(), 0, 0, [] { return true; }), std::nullopt);
}

TEST_F(RosterTest, TheFirstRankOfARunIsNumberZeroUnlessItWasLost) {
  EXPECT_EQ(first_rank_of(folder_), 0);
  fs::create_directory(folder_ / "ranks");
  note_first_rank(folder_, 2);
  EXPECT_EQ(first_rank_of(folder_), 2);
  forget_first_rank(folder_);
  EXPECT_EQ(first_rank_of(folder_), 0);
}

}  // namespace
}  // namespace headroom
