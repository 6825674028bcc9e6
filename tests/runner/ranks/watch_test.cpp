#include "ranks/watch.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "ranks/sockets.hpp"

namespace headroom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Watches of one process stand for those of several: the end of one is the end of its connection.
class Watches {
 public:
  explicit Watches(int count, milliseconds patience = seconds(60)) : watches_(static_cast<size_t>(count)) {
    std::promise<std::string> told;
    const std::shared_future<std::string> heard = told.get_future().share();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        Ranks ranks;
        ranks.rank = ranks.local_rank = rank;
        ranks.count = ranks.local_count = count;
        const auto from_first = [&](const std::string& text) {
          if (rank == 0) told.set_value(text);
          return heard.get();
        };
        watches_[static_cast<size_t>(rank)] = std::make_unique<RankWatch>(
            ranks, from_first, [this](int lost) { return overdue.store(lost), true; }, std::vector<int>{}, patience);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  RankWatch& operator[](size_t rank) { return *watches_[rank]; }
  void end(size_t rank) { watches_[rank].reset(); }

  std::atomic<int> overdue{-1};

 private:
  std::vector<std::unique_ptr<RankWatch>> watches_;
};

TEST(RankWatch, ARankThatEndsIsLostForAllOthers) {
  for (const size_t ended : {0u, 1u, 2u}) {
    Watches watches(3);
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(watches[rank].lost(), std::nullopt);
    watches.end(ended);
    for (size_t rank = 0; rank < 3; ++rank) {
      if (rank == ended) continue;
      EXPECT_EQ(watches[rank].lost_within(seconds(60)), static_cast<int>(ended)) << rank;
    }
  }
}

TEST(RankWatch, ThoseThatEndBecauseOneDidAreNotNamed) {
  Watches watches(3);
  watches.end(1);
  EXPECT_EQ(watches[0].lost_within(seconds(60)), 1);
  watches.end(0);
  EXPECT_EQ(watches[2].lost_within(seconds(60)), 1);
}

TEST(RankWatch, AtTheEndOfARunNobodyIsLost) {
  Watches watches(3);
  for (size_t rank = 0; rank < 3; ++rank) watches[rank].leave();
  watches.end(1);
  watches.end(0);
  EXPECT_EQ(watches[2].lost_within(milliseconds(300)), std::nullopt);
}

TEST(RankWatch, OnlyWhoDoesNotKnowItIsOverdue) {
  Watches watches(2, milliseconds(200));
  watches.end(1);
  EXPECT_EQ(watches[0].lost_within(seconds(60)), 1);
  while (watches.overdue.load() < 0) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(watches.overdue.load(), 1);

  Watches others(2, milliseconds(500));
  others.end(1);
  EXPECT_EQ(others[0].lost_within(seconds(60)), 1);
  others[0].acknowledge();
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_EQ(others.overdue.load(), -1);
}

// The rest of the five seconds is for the ends of those that hear of it.
TEST(RankWatch, APeerThatGivesNoSignIsLostAfterThreeSeconds) {
  const Listener listener = listen_for_ranks(/*here_only=*/true);
  const Descriptor socket = connect_to("127.0.0.1", listener.port);
  notice_lost_peer(socket);
  const auto setting = [&](int option) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, option, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(setting(TCP_USER_TIMEOUT), 3000);
  EXPECT_EQ(setting(TCP_KEEPIDLE) + setting(TCP_KEEPINTVL) * setting(TCP_KEEPCNT), 3);
}

// It may compute for minutes: its kernel answers that there is no room.
TEST(RankWatch, TheWayToAPeerThatDoesNotReadIsNotCut) {
  const Listener listener = listen_for_ranks(/*here_only=*/true);
  const Descriptor socket = connect_to("127.0.0.1", listener.port);
  const auto until = std::chrono::steady_clock::now() + seconds(9);
  const std::optional<Descriptor> peer = accept_rank(listener, until);
  ASSERT_TRUE(peer);
  const std::vector<int> connections = open_connections();
  EXPECT_NE(std::ranges::find(connections, socket.get()), connections.end());
  EXPECT_EQ(std::ranges::find(connections, listener.socket.get()), connections.end());
  ask_while_idle(socket.get());
  const std::vector<char> bytes(1 << 20);
  while (send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  while (std::chrono::steady_clock::now() < until) {
    ASSERT_FALSE(is_cut(socket.get()));
    std::this_thread::sleep_for(milliseconds(20));
  }
}

TEST(RankWatch, AStrangerAtItsPortIsNoRank) {
  Ranks first;
  first.count = first.local_count = 2;
  Ranks second = first;
  second.rank = second.local_rank = 1;
  std::promise<std::string> told;
  std::optional<Descriptor> stranger;
  std::unique_ptr<RankWatch> other;
  std::thread thread([&] {
    const std::string text = told.get_future().get();
    stranger = connect_to("127.0.0.1", static_cast<uint16_t>(std::stoul(text)));
    other = std::make_unique<RankWatch>(
        second, [&](const std::string&) { return text; }, [](int) { return true; });
  });
  RankWatch watch(
      first,
      [&](const std::string& text) {
        told.set_value(text);
        return text;
      },
      [](int) { return true; });
  thread.join();
  stranger.reset();
  EXPECT_EQ(watch.lost_within(milliseconds(200)), std::nullopt);
  other.reset();
  EXPECT_EQ(watch.lost_within(seconds(60)), 1);
}

}  // namespace
}  // namespace headroom
