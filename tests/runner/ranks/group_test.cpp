// Real processes over loopback.
#include "ranks/group.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "error.hpp"
#include "in_ranks.hpp"
#include "ranks/agreement.hpp"

namespace headroom {
namespace {

TEST(Group, AddsUpTheSameBitsOnAllRanks) {
  for (const int count : {2, 3, 4}) {
    const auto ended = in_ranks(count, [](RankGroup& group) {
      at::Tensor numbers = at::arange(1000, at::kDouble).add(0.1).mul(1.0 / (3 + group.ranks().rank));
      group.add_up(numbers);
      const std::string bytes(static_cast<const char*>(numbers.const_data_ptr()), numbers.nbytes());
      double expected = 0;
      for (int rank = 0; rank < group.ranks().count; ++rank) expected += 7.1 / (3 + rank);
      const bool close = std::abs(numbers[7].item<double>() - expected) < 1e-12;
      bool same = true;
      for (const std::string& other : group.gather(bytes)) same = same && other == bytes;
      return close && same ? as_expected : 1;
    });
    EXPECT_EQ(ended, std::vector<int>(static_cast<size_t>(count), as_expected));
  }
}

TEST(Group, GathersTextsOfAnyLength) {
  EXPECT_EQ(in_ranks(3,
                     [](RankGroup& group) {
                       const std::string own(static_cast<size_t>(group.ranks().rank) * 5, 'a');
                       const bool texts = group.gather(own) == std::vector<std::string>{"", "aaaaa", "aaaaaaaaaa"};
                       const bool none = group.gather("") == std::vector<std::string>(3);
                       const bool first = group.from_first(group.is_first() ? "x" : "y") == "x";
                       const bool all = group.on_all(true) && !group.on_all(group.ranks().rank != 1);
                       return texts && none && first && all ? as_expected : 1;
                     }),
            std::vector<int>(3, as_expected));
}

TEST(Group, ARankThatIsKilledIsNamedByTheOthers) {
  for (const int killed : {0, 1}) {
    const auto ended = in_ranks(3, [&](RankGroup& group) {
      group.wait_for_all();
      if (group.ranks().rank == killed) raise(SIGKILL);
      try {
        for (;;) group.wait_for_all();
      } catch (const Error& problem) {
        const std::string name = "rank " + std::to_string(killed) + " of 3 on host " + host_name() + " has ended";
        const bool named = std::string(problem.what()).find(name) != std::string::npos;
        if (!named) std::fprintf(stderr, "%s\n", problem.what());
        return named && problem.exit_code() == Exit::resumable ? as_expected : 1;
      }
    });
    std::vector<int> expected(3, as_expected);
    expected[static_cast<size_t>(killed)] = 128 + SIGKILL;
    EXPECT_EQ(ended, expected);
  }
}

TEST(Group, SumsMayBeUnderWayTogether) {
  EXPECT_EQ(in_ranks(3,
                     [](RankGroup& group) {
                       std::vector<at::Tensor> numbers;
                       std::vector<std::shared_ptr<RankGroup::Sum>> sums;
                       for (int i = 0; i < 5; ++i) {
                         numbers.push_back(at::full({1000 << i}, static_cast<double>(i + group.ranks().rank)));
                         sums.push_back(group.begin_to_add_up(numbers.back()));
                       }
                       for (const auto& sum : sums) group.end(*sum);
                       for (int i = 0; i < 5; ++i) {
                         if (!numbers[static_cast<size_t>(i)].eq(3.0 * i + 3.0).all().item<bool>()) return 1;
                       }
                       return as_expected;
                     }),
            std::vector<int>(3, as_expected));
}

TEST(Group, WhereARankIsKilledTheSumsThatAreUnderWayHoldNobody) {
  const auto ended = in_ranks(3, [](RankGroup& group) {
    std::vector<std::shared_ptr<RankGroup::Sum>> sums;
    try {
      for (int i = 0; i < 5; ++i) {
        if (group.ranks().rank == 1 && i == 2) raise(SIGKILL);
        sums.push_back(group.begin_to_add_up(at::ones({1 << 16})));
      }
      for (const auto& sum : sums) group.end(*sum);
      return 1;
    } catch (const Error& problem) {
      return problem.exit_code() == Exit::resumable ? as_expected : 2;
    }
  });
  EXPECT_EQ(ended, (std::vector<int>{as_expected, 128 + SIGKILL, as_expected}));
}

TEST(Group, WhatDiffersIsOneSentenceOnAllRanks) {
  EXPECT_EQ(in_ranks(3,
                     [](RankGroup& group) {
                       require_agreement(group, {{"the data", "same"}});
                       try {
                         require_agreement(
                             group, {{"the experiment", "same"},
                                     {"the data", group.ranks().rank == 2 ? "a = 1\nb = 3\nc = 4" : "a = 1\nb = 2"}});
                       } catch (const Error& problem) {
                         const std::string expected = "[ranks] the data of rank 2 on host " + host_name() +
                                                      " differs: it has b = 3, and rank 0 on host " + host_name() +
                                                      " has b = 2: ";
                         return std::string(problem.what()).starts_with(expected) ? as_expected : 1;
                       }
                       return 2;
                     }),
            std::vector<int>(3, as_expected));
}

TEST(Group, OfOneProcessIsNotMade) { EXPECT_EQ(join_group(Ranks()), nullptr); }

}  // namespace
}  // namespace headroom
