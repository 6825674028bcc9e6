// Threads of a loader: nothing to read is slept through, no call is lost, and who pauses lends its turn.
#include "data/reader_pool.hpp"

#include <atomic>
#include <gtest/gtest.h>

namespace headroom {
namespace {

using Kind = ReaderPool::Kind;
using namespace std::chrono_literals;

// True as soon as `holds`, false after ten seconds.
template <class Holds>
bool comes_true(Holds&& holds) {
  for (int i = 0; i < 10'000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// Things to read that are put there one at a time.
struct Pile {
  std::atomic<int> left{0}, taken{0}, looks{0};
  bool take() {
    ++looks;
    for (int seen = left; seen > 0;) {
      if (left.compare_exchange_weak(seen, seen - 1)) return true;
    }
    return false;
  }
};

TEST(ReaderPool, EveryCallIsHeard) {
  Pile pile;
  ReaderPool pool(3, 0, [&](Kind) {
    return [&](ReaderPauses&) {
      if (!pile.take()) return false;
      ++pile.taken;
      return true;
    };
  });
  pool.start();
  for (int i = 0; i < 5000; ++i) {
    ++pile.left;
    pool.wake(Kind::worker);
    if (i % 3 == 0) {
      ASSERT_TRUE(comes_true([&] { return pile.taken == i + 1; })) << i;
    }
  }
  EXPECT_TRUE(comes_true([&] { return pile.taken == 5000; }));
}

TEST(ReaderPool, WhoFindsNothingSleeps) {
  Pile pile;
  ReaderPool pool(2, 0, [&](Kind) { return [&](ReaderPauses&) { return pile.take(); }; });
  pool.start();
  ASSERT_TRUE(comes_true([&] { return pile.looks == 2; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(pile.looks, 2);
  pool.wake(Kind::worker);
  EXPECT_TRUE(comes_true([&] { return pile.looks == 3; }));
}

TEST(ReaderPool, NothingIsReadOnceItHasStopped) {
  Pile pile;
  ReaderPool pool(2, 0, [&](Kind) { return [&](ReaderPauses&) { return pile.take(); }; });
  pool.start();
  pool.stop();
  const int looks = pile.looks;
  pile.left = 1;
  pool.wake(Kind::worker);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(pile.looks, looks);
  pool.start();
  EXPECT_TRUE(comes_true([&] { return pile.left == 0; }));
}

TEST(ReaderPool, AWaitCountsAsIdleWhileItGoesOnAndWhereItEndsInAStop) {
  Pile pile;
  ReaderPool pool(1, 0, [&](Kind) { return [&](ReaderPauses&) { return pile.take(); }; });
  pool.start();
  ASSERT_TRUE(comes_true([&] { return pile.looks == 1; }));
  const double before = pool.times().idle;
  ASSERT_TRUE(comes_true([&] { return pool.times().idle > before; }));
  const double waited = pool.times().idle;
  pool.stop();
  const double after = pool.times().idle;
  EXPECT_GE(after, waited);
  EXPECT_EQ(pool.times().idle, after) << "no thread waits any more";
}

// Three reads wait for the disk at a time with one worker; one computes at a time.
TEST(ReaderPool, WhoPausesLendsItsTurn) {
  Pile pile;
  pile.left = 30;
  std::atomic<int> pausing{0}, computing{0}, most_pausing{0}, most_computing{0};
  const auto count = [](std::atomic<int>& now, std::atomic<int>& most) {
    const int here = ++now;
    for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
    }
  };
  ReaderPool* of_the_threads = nullptr;
  ReaderPool pool(1, 2, [&](Kind) {
    return [&](ReaderPauses&) {
      if (!pile.take()) return false;
      of_the_threads->wake(Kind::extra);
      count(computing, most_computing);
      --computing;
      {
        const Pause pause(PauseFor::disk);
        count(pausing, most_pausing);
        std::this_thread::sleep_for(5ms);
        --pausing;
      }
      count(computing, most_computing);
      --computing;
      ++pile.taken;
      return true;
    };
  });
  of_the_threads = &pool;
  pool.start();
  EXPECT_TRUE(comes_true([&] { return pile.taken == 30; }));
  EXPECT_EQ(most_pausing, 3);
  EXPECT_EQ(most_computing, 1);
}

// A thread that comes back from a pause may hold what the one with the turn waits for.
TEST(ReaderPool, NobodyWaitsForATurnForEver) {
  Pile pile;
  pile.left = 2;
  std::atomic<bool> first_is_back{false};
  std::atomic<int> begun{0};
  ReaderPool pool(1, 1, [&](Kind) {
    return [&](ReaderPauses&) {
      if (!pile.take()) return false;
      if (++begun == 1) {
        {
          const Pause pause(PauseFor::disk);
          comes_true([&] { return begun == 2; });
        }
        first_is_back = true;
      } else {
        EXPECT_TRUE(comes_true([&] { return first_is_back.load(); }));
      }
      ++pile.taken;
      return true;
    };
  });
  pool.start();
  pool.wake(Kind::extra);
  EXPECT_TRUE(comes_true([&] { return pile.taken == 2; }));
}

}  // namespace
}  // namespace headroom
