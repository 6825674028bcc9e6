// A source gives memory back (headroom.gc) only while nobody reads from it, however busy the loader's threads are.
#include <gtest/gtest.h>

#include "data/loader.hpp"
#include "fake_source.hpp"

namespace headroom {
namespace {

TEST(Trim, WaitsForTheReadsInFlight) {
  FakeData data;
  data.delay_us = 300;
  const auto source = open_fake(data);
  LoaderOptions options;
  options.batch_size = 2;
  options.num_workers = 4;
  options.prefetch_factor = 4;
  Loader loader(source, {"all", 0, source->groups(0)}, {}, options);
  loader.seek(0, 0, /*continuous=*/true);
  for (int epoch = 0; epoch < 2; ++epoch) {
    while (loader.next()) EXPECT_EQ(source->trim(HR_TRIM_ALL), HR_TRIM_ALL * 100);
  }
  EXPECT_EQ(data.trims, 100);
  EXPECT_EQ(data.busy_trims, 0);
}

TEST(Trim, ASourceWithoutItGivesNothing) {
  FakeData data;
  const auto source = open_fake(data, /*with_gc=*/false);
  EXPECT_EQ(source->trim(HR_TRIM_ALL), 0);
  EXPECT_EQ(data.trims, 0);
}

}  // namespace
}  // namespace headroom
