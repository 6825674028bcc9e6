// What a run says of its sample cache. Of its loaders: loader_test.cpp.
#include "data/data_report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headroom {
namespace {

TEST(CacheReport, TheLineUsersKnow) {
  const SampleCache::Statistics statistics{374, uint64_t{49876} << 20, uint64_t{51200} << 20, 8245, 1755, 12, 3};
  EXPECT_EQ(cache_line(statistics),
            "cache: 374 items, 49876 / 51200 MB, 82.45 % hits (8245 hits, 1755 misses), 12 evictions");
  EXPECT_EQ(cache_json(statistics)["hit_rate"], 0.8245);
  EXPECT_EQ(cache_line({}), "cache: 0 items, 0 / 0 MB, 0.00 % hits (0 hits, 0 misses), 0 evictions");
}

CacheSetting frames_of_133_mib() {
  return {.limit_bytes = int64_t{374} * 133,
          .global_shuffle = true,
          .augments = false,
          .source = "frames",
          .train_samples = 2222,
          .val_samples = 10,
          .sample_bytes = 133};
}

TEST(CacheReport, SaysWhatToExpect) {
  CacheSetting setting = frames_of_133_mib();
  EXPECT_EQ(cache_outlook(setting),
            std::vector<std::string>{"the sample cache holds 374 of 2222 training samples: 16.8 % of reads will hit "
                                     "with data.cache_policy = \"planned\""});
  setting.limit_bytes = 2222 * 133;
  EXPECT_EQ(cache_outlook(setting), std::vector<std::string>{"the sample cache holds all 2222 training samples"});
  setting.limit_bytes = 0;
  EXPECT_TRUE(cache_outlook(setting).empty());
}

TEST(CacheReport, SaysThatLruCannotHelpUnderAShuffle) {
  CacheSetting setting = frames_of_133_mib();
  setting.samples = CachePolicy::lru;
  EXPECT_EQ(cache_outlook(setting)[0],
            "the sample cache holds 374 of 2222 training samples: 1.5 % of reads will hit with data.cache_policy = "
            "\"lru\", which drops each before its turn comes again; \"planned\" would hit 16.8 %");
  setting.augments = true;
  const auto lines = cache_outlook(setting);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "the sample cache keeps validation samples, and what datasource 'frames' puts there itself: its training "
            "samples are drawn anew each epoch");
  EXPECT_TRUE(lines[1].starts_with("data.cache_policy = \"lru\" cannot help under a global shuffle"));
}

TEST(CacheReport, WarnsAboveHalfOfTheRoom) {
  CacheSetting setting = frames_of_133_mib();
  setting.limit_bytes = int64_t{50} << 30;
  setting.room_bytes = int64_t{100} << 30;
  EXPECT_EQ(cache_outlook(setting).size(), 1u);
  setting.room_bytes = int64_t{64} << 30;
  ASSERT_EQ(cache_outlook(setting).size(), 2u);
  EXPECT_EQ(cache_outlook(setting)[1],
            "data.cache_size is 50.0 GiB, more than half of the 64.0 GiB this run may hold: it is the first to shrink "
            "when memory is short; at most 32.0 GiB is a good rule");
}

}  // namespace
}  // namespace headroom
