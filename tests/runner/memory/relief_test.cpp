#include "memory/relief.hpp"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Relief, StopsAsSoonAsEnoughCameBack) {
  std::string asked;
  const auto rung = [&](const char* name, int order, int64_t gives) {
    return add_rung({.name = name, .order = order, .give_back = [&asked, name, gives](int64_t) {
                       asked += name;
                       return gives;
                     }});
  };
  const auto c = rung("c", 3, 100), a = rung("a", 1, 10), b = rung("b", 2, 20);
  EXPECT_EQ(give_back_memory(25), 30);
  EXPECT_EQ(asked, "ab");
  EXPECT_EQ(give_back_memory(1000), 130);
}

TEST(Relief, ARungThatAllocatesDoesNotAskTheLadderAgain) {
  int asked = 0;
  const auto rung = add_rung({.name = "one", .order = 1, .give_back = [&](int64_t) {
                                ++asked;
                                return give_back_memory(5);
                              }});
  EXPECT_EQ(give_back_memory(5), 0);
  EXPECT_EQ(asked, 1);
}

TEST(Relief, LeavesTheLadderWithItsRegistration) {
  {
    const auto rung = add_rung({.name = "one", .order = 1, .give_back = [](int64_t) { return 7; }});
  }
  EXPECT_EQ(give_back_memory(1), 0);
}

// Two rungs that write what happens to them.
struct Climb {
  std::string happened;
  RungRegistration cache = add_rung({.name = "cache",
                                     .order = 100,
                                     .give_back =
                                         [this](int64_t) {
                                           happened += "g";
                                           return 1;
                                         },
                                     .tighten = [this] { happened += "C"; },
                                     .relax = [this] { happened += "c"; }});
  RungRegistration batch = add_rung(
      {.name = "batch", .order = 400, .tighten = [this] { happened += "B"; }, .relax = [this] { happened += "b"; }});
  std::vector<std::string> said;
  PressureLadder ladder{[this](const std::string& line) { said.push_back(line); }};
  PressureLadder::Clock::time_point start = PressureLadder::Clock::now();
  void judge(bool is_short, milliseconds at) { ladder.judge(is_short, 10, start + at); }
};

TEST(Pressure, GivesBackAtOnceAndTightensRungByRungWhileItLasts) {
  Climb climb;
  climb.judge(false, milliseconds(0));
  climb.judge(true, milliseconds(100));
  EXPECT_EQ(climb.happened, "g");
  climb.judge(true, milliseconds(600));
  EXPECT_EQ(climb.happened, "g");
  climb.judge(true, milliseconds(2200));
  EXPECT_EQ(climb.happened, "ggC");
  climb.judge(true, milliseconds(4300));
  EXPECT_EQ(climb.happened, "ggCgB");
  climb.judge(true, milliseconds(9000));
  EXPECT_EQ(climb.happened, "ggCgBg");
  EXPECT_EQ(climb.ladder.rungs_in_force(), 2u);
  EXPECT_EQ(climb.said, (std::vector<std::string>{"memory is short: cache", "memory is short: batch"}));
}

TEST(Pressure, ComesBackDownOneRungAtATimeAndOnlyWhenItStaysCalm) {
  Climb climb;
  for (int second = 0; second < 6; ++second) climb.judge(true, seconds(second));
  ASSERT_EQ(climb.ladder.rungs_in_force(), 2u);
  climb.happened.clear();
  climb.judge(false, seconds(10));
  climb.judge(false, seconds(39));
  EXPECT_EQ(climb.happened, "");
  climb.judge(false, seconds(41));
  EXPECT_EQ(climb.happened, "b");
  climb.judge(false, seconds(60));
  EXPECT_EQ(climb.happened, "b");
  climb.judge(false, seconds(72));
  EXPECT_EQ(climb.happened, "bc");
  EXPECT_EQ(climb.ladder.rungs_in_force(), 0u);
  EXPECT_EQ(climb.said.back(), "memory is no longer short: cache as before");
}

}  // namespace
}  // namespace headroom
