// A batch that several processes share.
#include "data/share.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>

#include "loader_trial.hpp"

namespace headroom {
namespace {

TEST(Share, PartsFollowEachOtherAndDifferByOneSampleAtMost) {
  for (uint64_t parts = 1; parts < 9; ++parts) {
    for (uint64_t count = 0; count < 20; ++count) {
      uint64_t at = 0;
      for (uint64_t part = 0; part < parts; ++part) {
        const Share share{part, parts};
        EXPECT_EQ(share.begin(count), at);
        at = share.end(count);
        EXPECT_LE(at - share.begin(count), share.most(count));
        EXPECT_GE(at - share.begin(count) + 1, share.most(count));
      }
      EXPECT_EQ(at, count);
    }
  }
}

LoaderOptions in_order(LoaderOptions options) {
  options.shuffle = Shuffle::sequential;
  return options;
}

// Also where they are fewer than the parts, and in the epoch's last, shorter batch.
TEST(Share, LoadersOfAllPartsDeliverTheWholesSamplesInItsOrder) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int64_t batch : {2, 7, 16}) {
    for (const uint64_t parts : {2u, 3u, 5u}) {
      Loader whole(source, train(*source), {}, in_order(options(0, batch)));
      std::vector<std::unique_ptr<Loader>> shares;
      for (uint64_t part = 0; part < parts; ++part) {
        LoaderOptions of_part = in_order(options(part == 1 ? 2 : 0, batch));
        of_part.share = {part, parts};
        shares.push_back(std::make_unique<Loader>(source, train(*source), Normalizer{}, of_part));
      }
      for (auto expected = whole.next(); expected; expected = whole.next()) {
        std::vector<uint64_t> index, key;
        for (const auto& share : shares) {
          const auto found = share->next();
          ASSERT_TRUE(found);
          EXPECT_EQ(found->first, expected->first + index.size());
          index.insert(index.end(), found->index.begin(), found->index.end());
          key.insert(key.end(), found->key.begin(), found->key.end());
        }
        EXPECT_EQ(index, expected->index);
        EXPECT_EQ(key, expected->key);
      }
      for (const auto& share : shares) EXPECT_FALSE(share->next());
    }
  }
}

// A batch's samples under their keys, whoever reads them.
TEST(Share, LoadersOfAllPartsDeliverAShuffledBatchOnce) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int64_t batch : {2, 7, 16}) {
    for (const uint64_t parts : {2u, 3u, 5u}) {
      Loader whole(source, train(*source), {}, options(0, batch));
      std::vector<std::unique_ptr<Loader>> shares;
      for (uint64_t part = 0; part < parts; ++part) {
        LoaderOptions of_part = options(part == 1 ? 2 : 0, batch);
        of_part.share = {part, parts};
        shares.push_back(std::make_unique<Loader>(source, train(*source), Normalizer{}, of_part));
      }
      for (auto expected = whole.next(); expected; expected = whole.next()) {
        std::map<uint64_t, uint64_t> keys, expected_keys;
        for (size_t i = 0; i < expected->count(); ++i) expected_keys[expected->index[i]] = expected->key[i];
        uint64_t last = 0, count = 0;
        for (const auto& share : shares) {
          const auto found = share->next();
          ASSERT_TRUE(found);
          EXPECT_EQ(found->first, expected->first + count);
          EXPECT_TRUE(std::ranges::is_sorted(found->index));
          if (found->count() > 0) {
            EXPECT_GE(found->index.front(), last) << "shares are neighbours";
          }
          for (size_t i = 0; i < found->count(); ++i) keys[last = found->index[i]] = found->key[i];
          count += found->count();
        }
        EXPECT_EQ(count, expected->count());
        EXPECT_EQ(keys, expected_keys);
      }
    }
  }
}

// What one keeps the others need not.
TEST(Share, EachPartMostlyMeetsTheSameSamplesInEveryEpoch) {
  FakeData data;
  const auto source = open_fake(data);
  constexpr uint64_t parts = 2, epochs = 6;
  size_t met = 0;
  for (uint64_t part = 0; part < parts; ++part) {
    LoaderOptions of_part = options(0, 40);
    of_part.share = {part, parts};
    Loader loader(source, train(*source), {}, of_part);
    std::set<uint64_t> samples;
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      loader.seek(epoch);
      while (const auto batch = loader.next()) samples.insert(batch->index.begin(), batch->index.end());
    }
    met += samples.size();
  }
  // 80 samples: any half of each batch would meet 158 of 2 x 80 in six epochs.
  EXPECT_LE(met, 115u);
}

}  // namespace
}  // namespace headroom
