// Ranks that are killed, and those that go on without them. The test's process stands for their launcher.
#include <chrono>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <thread>
#include <torch/torch.h>

#include "in_ranks.hpp"
#include "ranks/gloo_backend.hpp"
#include "ranks/members.hpp"
#include "ranks/sockets.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// What each of them ends with, by its number. `body` as of in_ranks(), of a group that outlives losses, if at least
// `least` are left.
std::vector<int> in_elastic_ranks(int count, const std::function<int(RankGroup& group)>& body, size_t least = 1) {
  std::string folder = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  std::map<pid_t, int> processes;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      alarm(240);
      std::signal(SIGPIPE, SIG_IGN);
      try {
        Ranks ranks;
        ranks.rank = ranks.local_rank = ranks.launched_rank = rank;
        ranks.count = ranks.local_count = ranks.launched_count = count;
        ranks.elastic = true;
        ranks.store_file = folder + "/store";
        RankGroup group(ranks);
        group.outlive_losses();
        const int ended_with = body(group);
        group.leave();
        _exit(ended_with);
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "%d: %s\n", rank, problem.what());
        _exit(1);
      }
    }
    processes[process] = rank;
  }
  std::vector<int> ended(static_cast<size_t>(count), -1);
  const Roster roster(folder);
  Members left;
  while (!processes.empty()) {
    int status = 0;
    const pid_t process = waitpid(-1, &status, 0);
    if (process < 0) break;
    int& ended_with = ended[static_cast<size_t>(processes.at(process))];
    ended_with = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    processes.erase(process);
    if (!WIFSIGNALED(status)) continue;
    left = {.group = left.group + 1};
    for (const auto& [id, rank] : processes) left.ranks.push_back(rank);
    std::ranges::sort(left.ranks);
    left.ended = left.ranks.size() < least;
    roster.tell(left);
  }
  fs::remove_all(folder);
  return ended;
}

const std::function<bool()> never = [] { return false; };
constexpr int ended_by_kill = 128 + SIGKILL;

// Returns who is no longer a member.
std::vector<int> rejoined(RankGroup& group) {
  std::vector<int> gone = group.members();
  for (;;) {
    try {
      group.rejoin(never);
      break;
    } catch (const RankLost&) {
    }
  }
  const std::vector<int> left = group.members();
  std::erase_if(gone, [&](int rank) { return std::ranges::find(left, rank) != left.end(); });
  return gone;
}

// The sum of the numbers that the ranks of the group were launched with.
double sum_of_numbers(RankGroup& group) {
  at::Tensor sum = at::full({100000}, static_cast<double>(group.ranks().launched_rank));
  group.add_up(sum);
  return sum[99999].item<double>();
}

TEST(Rejoin, ThoseThatAreLeftAddUpWithoutTheOneThatWasKilled) {
  for (const int victim : {0, 2, 3}) {
    const auto ended = in_elastic_ranks(4, [&](RankGroup& group) {
      if (sum_of_numbers(group) != 6) return 2;
      if (group.ranks().rank == victim) raise(SIGKILL);
      try {
        for (;;) group.wait_for_all();
      } catch (const RankLost& lost) {
        const std::string name = "rank " + std::to_string(victim) + " of 4 on host ";
        if (std::string(lost.what()).find(name) == std::string::npos) return 3;
      }
      if (rejoined(group) != std::vector<int>{victim}) return 4;
      if (group.ranks().count != 3 || group.is_first() != (group.ranks().launched_rank == (victim == 0 ? 1 : 0)))
        return 5;
      return sum_of_numbers(group) == 6 - victim ? as_expected : 6;
    });
    std::vector<int> expected(4, as_expected);
    expected[static_cast<size_t>(victim)] = ended_by_kill;
    EXPECT_EQ(ended, expected);
  }
}

// Buckets of a window; their memory is used again.
TEST(Rejoin, SumsThatWereUnderWayHaveEnded) {
  const auto ended = in_elastic_ranks(3, [](RankGroup& group) {
    std::vector<at::Tensor> numbers;
    for (int i = 0; i < 8; ++i) numbers.push_back(at::ones({1 << 16}));
    std::vector<std::shared_ptr<RankGroup::Sum>> sums;
    try {
      for (int i = 0; i < 8; ++i) {
        if (group.ranks().rank == 1 && i == 3) raise(SIGKILL);
        sums.push_back(group.begin_to_add_up(numbers[static_cast<size_t>(i)]));
      }
      for (const auto& sum : sums) group.end(*sum);
      return 2;
    } catch (const RankLost&) {
    }
    rejoined(group);
    for (at::Tensor& all : numbers) all.fill_(2.0);
    sums.clear();
    for (const at::Tensor& all : numbers) sums.push_back(group.begin_to_add_up(all));
    for (const auto& sum : sums) group.end(*sum);
    for (const at::Tensor& all : numbers) {
      if (!all.eq(4.0).all().item<bool>()) return 3;
    }
    return as_expected;
  });
  EXPECT_EQ(ended, (std::vector<int>{as_expected, ended_by_kill, as_expected}));
}

TEST(Rejoin, TwoAtOnceAndThenAllButOne) {
  const auto ended = in_elastic_ranks(4, [](RankGroup& group) {
    group.wait_for_all();
    const int rank = group.ranks().launched_rank;
    if (rank == 0 || rank == 2) raise(SIGKILL);
    try {
      for (;;) group.wait_for_all();
    } catch (const RankLost&) {
    }
    rejoined(group);
    if (sum_of_numbers(group) != 4) return 2;
    if (rank == 3) raise(SIGKILL);
    try {
      for (;;) group.wait_for_all();
    } catch (const RankLost&) {
    }
    rejoined(group);
    if (!open_connections().empty()) return 4;  // of the groups before
    return sum_of_numbers(group) == 1 && group.is_first() && group.ranks().count == 1 ? as_expected : 3;
  });
  EXPECT_EQ(ended, (std::vector<int>{ended_by_kill, as_expected, ended_by_kill, ended_by_kill}));
}

// Waiting for it would take minutes, and end the test.
TEST(Rejoin, OneThatIsKilledWhileTheOthersMeetItIsNotWaitedFor) {
  for (const bool is_connected : {false, true}) {
    for (const int second : {0, 1, 3}) {
      const auto ended = in_elastic_ranks(4, [=](RankGroup& group) {
        group.wait_for_all();
        const int rank = group.ranks().launched_rank;
        if (rank == 2) raise(SIGKILL);
        try {
          for (;;) group.wait_for_all();
        } catch (const RankLost&) {
        }
        if (rank == second) {
          const Roster roster(fs::path(group.ranks().store_file).parent_path());
          const auto next = next_group(roster, 0, rank, never);
          Ranks ranks = group.ranks();
          ranks.count = ranks.local_count = 3;
          ranks.rank = ranks.local_rank = static_cast<int>(std::ranges::find(next->ranks, rank) - next->ranks.begin());
          ranks.store_file = roster.store_of(1).string();
          const auto backend =
              is_connected ? open_backend(ranks, open_store(ranks, std::chrono::seconds(60)), std::chrono::seconds(60))
                           : nullptr;
          raise(SIGKILL);
        }
        if (rejoined(group) != std::vector<int>{std::min(2, second), std::max(2, second)}) return 2;
        return sum_of_numbers(group) == 4 - second ? as_expected : 3;
      });
      std::vector<int> expected(4, as_expected);
      expected[2] = expected[static_cast<size_t>(second)] = ended_by_kill;
      EXPECT_EQ(ended, expected) << is_connected << second;
    }
  }
}

// The training loop counts on this: see loop_elastic.cpp. A rank is killed at any time; all others vote, and then step.
TEST(Rejoin, NobodyIsMoreThanAStepAheadAndWhoIsBehindHasVoted) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto ended = in_elastic_ranks(4, [seed](RankGroup& group) {
      const int rank = group.ranks().launched_rank;
      std::mt19937 random(seed * 7 + static_cast<unsigned>(rank));
      std::thread end;
      group.wait_for_all();
      if (rank == static_cast<int>(seed % 4) || rank == static_cast<int>((seed + 1) % 4)) {
        const auto when = std::chrono::microseconds(random() % 60000);
        end = std::thread([when] {
          std::this_thread::sleep_for(when);
          raise(SIGKILL);
          kill(getpid(), SIGKILL);
        });
      }
      int64_t steps = 0;
      int losses = 0;
      while (losses < 2) {
        bool voted = false;
        try {
          for (;;) {
            voted = true;
            (void)group.on_all(true);
            voted = false;
            ++steps;
          }
        } catch (const RankLost&) {
        }
        for (;;) {
          try {
            group.rejoin(never);
            losses = 4 - static_cast<int>(group.members().size());
            int64_t most = steps;
            for (const std::string& other : group.gather({reinterpret_cast<const char*>(&steps), sizeof steps})) {
              int64_t theirs = 0;
              std::memcpy(&theirs, other.data(), sizeof theirs);
              if (std::abs(theirs - steps) > 1) return 2;
              most = std::max(most, theirs);
            }
            if (most > steps && !voted) return 3;
            voted = voted && most == steps;
            steps = most;
            break;
          } catch (const RankLost&) {
          }
        }
      }
      return as_expected;
    });
    std::vector<int> expected(4, as_expected);
    expected[seed % 4] = expected[(seed + 1) % 4] = ended_by_kill;
    EXPECT_EQ(ended, expected) << seed;
  }
}

TEST(Rejoin, WhereTheRunDoesNotGoOnItEndsAsWithoutIt) {
  const auto body = [](RankGroup& group) {
    group.wait_for_all();
    if (group.ranks().rank == 1) raise(SIGKILL);
    try {
      for (;;) group.wait_for_all();
    } catch (const RankLost&) {
    }
    try {
      group.rejoin(never);
      return 2;
    } catch (const RankLost&) {
      return 3;
    } catch (const Error& problem) {
      const bool named = std::string(problem.what()).find("rank 1 of 2 on host ") != std::string::npos;
      return named && problem.exit_code() == Exit::resumable ? as_expected : 4;
    }
  };
  EXPECT_EQ(in_elastic_ranks(2, body, /*least=*/2), (std::vector<int>{as_expected, ended_by_kill}));
}

}  // namespace
}  // namespace headroom
