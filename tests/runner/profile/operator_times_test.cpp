// Times of LibTorch's operators.
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <map>
#include <torch/torch.h>

#include "profile/operators.hpp"

namespace headroom {
namespace {

std::map<std::string, OperatorTime> by_name(const OperatorTimes& times) {
  std::map<std::string, OperatorTime> found;
  for (const OperatorTime& one : times.by_self_time()) found[one.name] = one;
  return found;
}

TEST(OperatorTimes, CountsCallsOfForwardAndBackward) {
  const at::Tensor weight = torch::ones({4, 4}).requires_grad_(true);
  OperatorTimes times(nullptr);
  weight.matmul(weight);
  times.count(true);
  for (int i = 0; i < 3; ++i) weight.matmul(weight).sum().backward();
  times.count(false);
  weight.matmul(weight);
  const auto found = by_name(times);
  EXPECT_EQ(found.at("aten::matmul").calls, 3);
  EXPECT_EQ(found.at("MmBackward0").calls, 3);
  EXPECT_GE(found.at("aten::mm").calls, 9) << "one in forward and two in backward";
  int64_t self_ns = 0;
  for (const auto& [name, one] : found) {
    EXPECT_LE(one.self_ns, one.total_ns) << name;
    EXPECT_GE(one.self_ns, 0) << name;
    self_ns += one.self_ns;
  }
  EXPECT_EQ(self_ns, times.self_ns());
  const std::vector<OperatorTime> sorted = times.by_self_time();
  for (size_t i = 1; i < sorted.size(); ++i) EXPECT_GE(sorted[i - 1].self_ns, sorted[i].self_ns);
}

TEST(OperatorTimes, WhatCallsItselfIsInItsTotalOnce) {
  OperatorTimes times(nullptr);
  times.count(true);
  {
    RECORD_USER_SCOPE("outer");
    {
      RECORD_USER_SCOPE("mine");
      {
        RECORD_USER_SCOPE("mine");
        torch::ones({1000});
      }
    }
  }
  const auto found = by_name(times);
  EXPECT_EQ(found.at("mine").calls, 2);
  EXPECT_LE(found.at("mine").total_ns, found.at("outer").total_ns);
  EXPECT_LE(found.at("aten::ones").total_ns, found.at("mine").total_ns);
}

TEST(OperatorTimes, NothingListensOnceItIsGone) {
  { const OperatorTimes times(nullptr); }
  EXPECT_FALSE(at::hasCallbacks());
}

}  // namespace
}  // namespace headroom
