#include <functional>
#include <gtest/gtest.h>
#include <vector>

#include "memory/supervisor.hpp"

namespace headroom {
namespace {

using namespace std::chrono_literals;

class StallWatchTest : public testing::Test {
 protected:
  // What looks at the box as it is now tell within `time`, one every 15 s.
  std::vector<std::string> within(std::chrono::seconds time) {
    std::vector<std::string> told;
    for (const auto end = now_ + time; now_ < end; now_ += 15s) {
      if (const auto clause = watch_.look(box_, now_)) told.push_back(*clause);
    }
    return told;
  }

  StallWatch::Clock::time_point now_ = StallWatch::Clock::now();
  StallWatch watch_{60s};
  BlackBoxReading box_{.phase = Phase::loading, .step = 12, .epoch = 1};
};

TEST_F(StallWatchTest, TellsAfterItsTimeAndEachTimeThatHasDoubled) {
  const auto told = within(600s);
  ASSERT_EQ(told.size(), 4u) << "60, 120, 240 and 480 s";
  EXPECT_EQ(told[0], "no progress for 60 s at step 12 of epoch 1: it waits for a batch of the datasource");
  EXPECT_EQ(told[3], "no progress for 480 s at step 12 of epoch 1: it waits for a batch of the datasource");
}

TEST_F(StallWatchTest, AnyMoveBeginsAnew) {
  const std::vector<std::function<void()>> moves = {
      [&] { box_.phase = Phase::forward; },
      [&] { ++box_.step; },
      [&] { ++box_.epoch; },
      [&] { box_.micro_batch = 2; },
      [&] { box_.plugin_call = "a step"; },
      [&] { ++box_.call_changes; },
  };
  within(60s);
  for (const auto& move : moves) {
    move();
    EXPECT_TRUE(within(60s).empty());
  }
  EXPECT_FALSE(within(30s).empty());
}

TEST_F(StallWatchTest, NamesTheCallThatDoesNotReturnInAnyPhase) {
  box_.phase = Phase::starting;
  box_.plugin_call = "wrist open";
  const auto told = within(75s);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], "no progress for 60 s at step 12 of epoch 1: 'wrist open' has not returned");
}

TEST_F(StallWatchTest, KeepsSilentWhereOtherWorkIsNotSeen) {
  for (const Phase phase : {Phase::starting, Phase::probing, Phase::epoch_end, Phase::finished}) {
    box_.phase = phase;
    EXPECT_TRUE(within(1000s).empty()) << phase_name(phase);
  }
}

TEST_F(StallWatchTest, TimeInWhichNobodyLookedIsNotThatOfTheRun) {
  within(30s);
  now_ += 3600s;
  EXPECT_TRUE(within(15s).empty()) << "both were stopped, by Ctrl-Z say";
}

}  // namespace
}  // namespace headroom
