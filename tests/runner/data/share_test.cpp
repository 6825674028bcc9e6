// A batch that several processes share.
#include "data/share.hpp"

#include <gtest/gtest.h>
#include <memory>

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

// Also where they are fewer than the parts, and in the epoch's last, shorter batch.
TEST(Share, LoadersOfAllPartsDeliverTheWholesSamplesInItsOrder) {
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

}  // namespace
}  // namespace headroom
