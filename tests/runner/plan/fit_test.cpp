// From a probe's points to peaks elsewhere.
#include "plan/fit.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "probed.hpp"

namespace headroom {
namespace {

// Slots apart, and as a share of what is expected: the fit adds a few per cent on purpose.
double share(const Prediction& prediction, double expected_mib) {
  return static_cast<double>(prediction.peak_bytes - prediction.slots_bytes) / (expected_mib * mib);
}

TEST(Fit, FollowsTheLineBeyondItsPointsAndBetweenThem) {
  const Fit fit(straight_probe(), readers(0, 1), /*full=*/false);
  for (const int64_t size : {1, 2, 5, 8, 32, 64}) {
    const double expected = 105.0 + 10.0 * static_cast<double>(size);
    const double found = share(fit.predict({64, 1, size}), expected);
    EXPECT_GE(found, 1.0) << size;
    EXPECT_LE(found, 1.08) << size;
  }
}

TEST(Fit, TheLastPointsDecideWhereTheLineBends) {
  Probe probe = straight_probe();
  for (int64_t& bytes : probe.points.back().held_bytes) bytes += 120 * mib;  // a slope of 30 from 2 to 8
  const Fit fit(probe, readers(0, 1), /*full=*/false);
  EXPECT_GE(share(fit.predict({16, 1, 16}), 105.0 + 80.0 + 120.0 + 8 * 30.0), 1.0);
}

TEST(Fit, WhatFallsWithTheMicroBatchIsNotExtrapolatedDownwards) {
  Probe probe = straight_probe();
  probe.points.back().held_bytes = probe.points.front().held_bytes;
  const Fit fit(probe, readers(0, 1), /*full=*/false);
  EXPECT_GE(share(fit.predict({64, 1, 64}), 115.0), 1.0);
}

TEST(Fit, OnePointMakesALineFromTheBase) {
  Probe probe = straight_probe();
  probe.points.erase(probe.points.begin() + 1, probe.points.end());
  const Fit fit(probe, readers(0, 1), /*full=*/false);
  EXPECT_GE(share(fit.predict({4, 1, 4}), 100.0 + 4 * 15.0), 1.0);
}

TEST(Fit, SlotsAreCountedForBothLoaders) {
  const auto slots_of = [](int workers, int prefetch, int64_t val_samples) {
    Probe probe = straight_probe();
    probe.val_samples = val_samples;
    return Fit(probe, readers(workers, prefetch), false).predict({8, 1, 1}).slots_bytes / (8 * mib);
  };
  EXPECT_EQ(slots_of(0, 4, 100), 2);
  EXPECT_EQ(slots_of(2, 3, 100), 2 * 7);
  EXPECT_EQ(slots_of(2, 3, 0), 7);
}

TEST(Fit, NamesThePhaseWhereThePeakIsReached) {
  const Fit fit(straight_probe(), readers(0, 1), /*full=*/false);
  EXPECT_EQ(probe_phases[fit.predict({1, 1, 1}).largest_phase], "evaluation");  // 5 of 115 MiB
  EXPECT_EQ(probe_phases[fit.predict({1, 1, 256}).largest_phase], "training");  // 5 of 2,665 MiB
}

TEST(Fit, KeptOutputsGrowWithTheEpoch) {
  Probe probe = straight_probe();
  probe.kept_bytes = mib / 4;
  const Prediction sums = Fit(probe, readers(0, 1), /*full=*/false).predict({8, 1, 8});
  const Prediction full = Fit(probe, readers(0, 1), /*full=*/true).predict({8, 1, 8});
  EXPECT_EQ(full.kept_bytes, 1100 * mib / 4);
  EXPECT_EQ(full.peak_bytes - sums.peak_bytes, 1100 * mib / 4);
  EXPECT_EQ(full.phase_bytes.front() - sums.phase_bytes.front(), 1000 * mib / 4);
}

TEST(Fit, EvaluationsTakeHalfOfWhatTrainingTakes) {
  Probe probe = straight_probe();
  probe.field_bytes = {1000};
  RunLoaders loaders = readers(0, 1);
  loaders.larger_evaluation_batches = true;
  const auto at_once = [&](int64_t batch_size, int64_t micro_batch, int64_t times_smaller) {
    for (ProbePoint& point : probe.points) {
      point.training_activation_bytes = 10 * mib * point.micro_batch;
      point.evaluation_activation_bytes = times_smaller == 0 ? 0 : 10 * mib * point.micro_batch / times_smaller;
    }
    return Fit(probe, loaders, false).predict({batch_size, 1, micro_batch}).evaluation_micro_batch;
  };
  EXPECT_EQ(at_once(2, 2, 10), 8) << "16 would take 8 of 10";
  EXPECT_EQ(at_once(2, 2, 1000), 64) << "a batch";
  EXPECT_EQ(at_once(64, 8, 4), 16);
  EXPECT_EQ(at_once(64, 8, 1), 8) << "never less than training's";
  EXPECT_EQ(at_once(2, 2, 0), 2) << "not measured";
  loaders.larger_evaluation_batches = false;
  EXPECT_EQ(at_once(2, 2, 1000), 2);
}

TEST(Fit, CountsTheLargerBatchesOfEvaluations) {
  Probe probe = straight_probe();
  probe.field_bytes = {mib / 8};
  RunLoaders loaders = readers(0, 1);
  const Prediction as_training = Fit(probe, loaders, false).predict({1, 1, 1});
  loaders.larger_evaluation_batches = true;
  const Prediction larger = Fit(probe, loaders, false).predict({1, 1, 1});
  EXPECT_EQ(larger.slots_bytes - as_training.slots_bytes, 7 * mib / 8) << "8 samples instead of 1";
  EXPECT_EQ(larger.least_bytes, as_training.least_bytes + 7 * mib / 8);
}

TEST(Probe, TravelsAsJson) {
  Probe probe = straight_probe();
  probe.kept_bytes = 7;
  probe.points.front().training_activation_bytes = 9;
  probe.points.front().evaluation_activation_bytes = 3;
  probe.indivisible_because = "it couples them";
  EXPECT_EQ(Probe::from_json(nlohmann::json::parse(probe.json().dump())).json(), probe.json());
  EXPECT_THROW(Probe::from_json({{"base_bytes", 1}}), nlohmann::json::exception);
}

}  // namespace
}  // namespace headroom
