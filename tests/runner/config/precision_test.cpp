#include "config/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"

namespace headroom {
namespace {

const std::vector<std::string> kOffered = {"couples_samples", "fp64", "bf16", "rng_keyed"};

TEST(Precision, Float32AndWhatTheModelOffersWork) {
  check_precision("fp32", {}, "m");
  check_precision("bf16", kOffered, "m");
  check_precision("fp64", kOffered, "m");
}

TEST(Precision, WhatItDoesNotOfferIsASentence) {
  EXPECT_THAT([] { check_precision("fp16", kOffered, "m"); },
              testing::ThrowsMessage<Error>(
                  "[train.precision] model 'm' does not work in \"fp16\": use \"fp32\" or \"bf16\" or \"fp64\""));
  EXPECT_THAT([] { check_precision("bf16", {}, "m"); },
              testing::ThrowsMessage<Error>("[train.precision] model 'm' does not work in \"bf16\": use \"fp32\""));
}

}  // namespace
}  // namespace headroom
