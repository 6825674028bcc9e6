#include "train/setup.hpp"

#include <gtest/gtest.h>

#include "trial_setup.hpp"

namespace headroom {
namespace {

TEST(Setup, WhatTheHostStandardisesReachesTheModelWithoutAUnit) {
  TrialSetup standardised, measured({"data.normalize=off"});
  ASSERT_EQ(standardised->data.source->fields()[0].unit, "V");
  EXPECT_EQ(standardised->model->fields()[0].unit, "");
  EXPECT_TRUE(standardised->model->fields()[0].normalize);
  EXPECT_EQ(standardised->model->fields()[1].unit, "m");
  EXPECT_EQ(measured->model->fields()[0].unit, "V");
  EXPECT_FALSE(measured->model->fields()[0].normalize);
}

}  // namespace
}  // namespace headroom
