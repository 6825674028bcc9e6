#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sweep/admission.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

constexpr int64_t mib = int64_t{1} << 20;

Json row(int64_t batch, int64_t micro_batch, int64_t peak_bytes) {
  return {{"batch_size", batch},
          {"micro_batch", micro_batch},
          {"predicted_peak_bytes", peak_bytes},
          {"work_bytes", peak_bytes - 10 * mib},
          {"least_bytes", peak_bytes - 20 * mib}};
}

// 100 MiB, and 10 for a sample of a micro-batch; 10 of it for what is read ahead, 10 for free lists.
Json plan_of_64() {
  Json rows = Json::array();
  for (int64_t batch = 64; batch >= 1; batch /= 2) {
    for (int64_t size = batch; size >= 1; size /= 2) rows.push_back(row(batch, size, (100 + 10 * size) * mib));
  }
  return {{"rows", rows}, {"as_written", rows[0]}};
}

TrialShape shape(int64_t batch, int64_t micro_batch = 0) {
  return {.group = "g", .batch_size = batch, .accumulation = 1, .micro_batch = micro_batch};
}

TEST(Needs, OneTableServesEveryBatchSizeInIt) {
  Needs needs;
  EXPECT_FALSE(needs.of(shape(8), 0));
  needs.add("g", plan_of_64());
  EXPECT_EQ(needs.of(shape(8), 0)->peak_bytes, 180 * mib);
  EXPECT_EQ(needs.of(shape(64), 0)->peak_bytes, 740 * mib);
  EXPECT_FALSE(needs.of(shape(12), 0)) << "no row";
  EXPECT_FALSE(needs.of({.group = "other", .batch_size = 8}, 0));
}

TEST(Needs, AnAutomaticMicroBatchIsTheLargestThatFits) {
  Needs needs;
  needs.add("g", plan_of_64());
  const auto need = needs.of(shape(64), 300 * mib);
  EXPECT_EQ(need->micro_batch, 16);
  EXPECT_EQ(need->peak_bytes, 260 * mib);
  EXPECT_TRUE(need->fits);
  const auto none = needs.of(shape(64), 80 * mib);
  EXPECT_EQ(none->micro_batch, 1);
  EXPECT_FALSE(none->fits);
}

TEST(Needs, WhatFitsBesideOneBatchComesBeforeWhatFitsWithoutFreeLists) {
  Json plan = plan_of_64();
  for (Json& row : plan.at("rows")) {
    if (row.at("micro_batch") > 4) row.at("least_bytes") = 50 * mib;
  }
  plan["as_written"] = plan["rows"][0];
  Needs needs;
  needs.add("g", plan);
  EXPECT_EQ(needs.of(shape(64), 300 * mib)->micro_batch, 16) << "whose work fits";
  const auto tight = needs.of(shape(64), 80 * mib);
  EXPECT_EQ(tight->micro_batch, 64) << "where no work fits: the largest that runs";
  EXPECT_EQ(tight->least_bytes, 50 * mib);
  EXPECT_TRUE(tight->fits);
}

TEST(Needs, AFixedMicroBatchFitsOrDoesNot) {
  Needs needs;
  needs.add("g", plan_of_64());
  EXPECT_FALSE(needs.of(shape(64, 64), 300 * mib)->fits);
  EXPECT_EQ(needs.of(shape(64, 64), 300 * mib)->peak_bytes, 740 * mib);
  EXPECT_TRUE(needs.of(shape(8, 64), 300 * mib)->fits) << "no larger than the batch";
  EXPECT_TRUE(needs.of(shape(16, 16), 250 * mib)->fits);
}

TEST(Needs, WhatAPlanDoesNotSeeSharesItsTable) {
  const TrainSection train;
  const auto group = [&](const Settings& settings) { return shape_of(settings, train).group; };
  EXPECT_EQ(group({{"train.optimizer.lr", "0.1"}, {"experiment.seed", "1"}, {"memory.limit", "\"1 GiB\""}}), group({}));
  EXPECT_EQ(group({{"train.batch_size", "8"}}), group({}));
  EXPECT_NE(group({{"train.optimizer.name", "\"sgd\""}}), group({}));
  EXPECT_NE(group({{"model.options.width", "8"}}), group({{"model.options.width", "16"}}));
  TrainSection long_window;
  long_window.batch_size = 16;
  EXPECT_NE(shape_of({}, long_window).group, group({})) << "a window of one sample is not probed any further";
}

TEST(Needs, OnlyWhatIsLargerInTheSameDirectionNeedsNoLess) {
  const Settings small = {{"train.batch_size", "8"}, {"model.options.width", "4"}, {"train.optimizer.lr", "0.1"}};
  const auto with = [&](size_t i, const std::string& value) {
    Settings settings = small;
    settings[i].second = value;
    return settings;
  };
  EXPECT_TRUE(needs_no_less(small, small));
  EXPECT_TRUE(needs_no_less(with(0, "16"), small));
  EXPECT_FALSE(needs_no_less(with(0, "4"), small));
  EXPECT_FALSE(needs_no_less(with(1, "8"), small)) << "nobody knows what an option costs";
  EXPECT_TRUE(needs_no_less(with(2, "9"), small));
  EXPECT_FALSE(needs_no_less({{"memory.limit", "\"2 GiB\""}}, {{"memory.limit", "\"1 GiB\""}}));
  EXPECT_TRUE(needs_no_less({{"train.micro_batch", "8"}}, {{"train.micro_batch", "\"auto\""}}));
  EXPECT_FALSE(needs_no_less({{"train.micro_batch", "\"auto\""}}, {{"train.micro_batch", "8"}}));
}

}  // namespace
}  // namespace headroom
