// The host's own samples in the sample cache: what a loader has read once it need not read again, and no batch shows
// it.

#include <gtest/gtest.h>

#include "data/cache_session.hpp"
#include "data/loader.hpp"
#include "fake_source.hpp"
#include "memory/ledger.hpp"

namespace headroom {
namespace {

class KeptByALoader : public testing::Test {
 protected:
  void SetUp() override {
    CacheSession::of_process()->blocks.set_limit(1 << 20);
    before_ = CacheSession::of_process()->blocks.statistics();
  }
  void TearDown() override { CacheSession::of_process()->blocks.set_limit(0); }

  static LoaderOptions options(int workers, std::optional<CachePolicy> keep) {
    LoaderOptions all;
    all.seed = 11;
    all.batch_size = 7;
    all.shuffle = Shuffle::global;
    all.num_workers = workers;
    all.keep_samples = keep;
    return all;
  }

  std::vector<std::string> epochs(Loader& loader, int count) {
    std::vector<std::string> all;
    loader.seek(0, 0, /*continuous=*/true);
    for (int epoch = 0; epoch < count; ++epoch) {
      while (const auto batch = loader.next()) {
        std::string& bytes = all.emplace_back();
        for (const DLTensor& field : batch->fields) {
          uint64_t size = field.dtype.bits / 8;
          for (int axis = 0; axis < field.ndim; ++axis) size *= static_cast<uint64_t>(field.shape[axis]);
          bytes.append(static_cast<const char*>(field.data), size);
        }
      }
    }
    return all;
  }

  SampleCache::Statistics since() const {
    SampleCache::Statistics now = CacheSession::of_process()->blocks.statistics();
    now.hits -= before_.hits, now.misses -= before_.misses, now.refused -= before_.refused;
    return now;
  }

  FakeData data_;
  SampleCache::Statistics before_;
};

TEST_F(KeptByALoader, WhatWasReadOnceIsNotReadAgain) {
  const auto source = open_fake(data_);
  Loader loader(source, Split("train", 0, source->groups(0)), {}, options(0, CachePolicy::planned));
  const auto first = epochs(loader, 1);
  const int reads = data_.reads;
  epochs(loader, 1);
  EXPECT_EQ(data_.reads, reads);
  EXPECT_EQ(since().hits, 100u);
  EXPECT_EQ(since().misses, 100u);
  EXPECT_EQ(since().items, 100u);
}

TEST_F(KeptByALoader, BatchesAreTheSameWithAndWithoutIt) {
  const auto source = open_fake(data_);
  const Split split("train", 0, source->groups(0));
  const Normalizer normalizer = Normalizer::measure(*source, split, "exact", 0);
  Loader plain(source, split, normalizer, options(0, std::nullopt));
  const auto expected = epochs(plain, 4);
  for (const CachePolicy policy : {CachePolicy::lru, CachePolicy::planned}) {
    for (const int64_t limit : {5000, 20000, 1 << 20}) {  // some samples fit, more, all
      for (const int workers : {0, 3}) {
        CacheSession::of_process()->blocks.set_limit(limit);
        Loader loader(source, split, normalizer, options(workers, policy));
        EXPECT_EQ(epochs(loader, 4), expected) << limit << " bytes, " << workers << " workers";
        EXPECT_GT(since().hits, 0u);
      }
    }
  }
}

TEST_F(KeptByALoader, WhatDoesNotFitIsReadAgain) {
  const auto source = open_fake(data_);
  CacheSession::of_process()->blocks.set_limit(10000);
  Loader loader(source, Split("train", 0, source->groups(0)), {}, options(0, CachePolicy::planned));
  epochs(loader, 3);
  const auto items = since().items;
  EXPECT_GT(items, 10u);
  EXPECT_LT(items, 90u);
  EXPECT_EQ(since().hits, 2 * items);
  EXPECT_LE(since().used_bytes, 10000u);
}

TEST_F(KeptByALoader, LoadersDoNotMixTheirSamplesAndTakeThemAlong) {
  const auto source = open_fake(data_);
  const Split split("train", 0, source->groups(0));
  const int64_t cached = read_ledger().live(Owner::cache);
  {
    Loader standardised(source, split, Normalizer::measure(*source, split, "exact", 0),
                        options(0, CachePolicy::planned));
    Loader plain(source, split, {}, options(0, CachePolicy::planned));
    const auto one = epochs(standardised, 1), other = epochs(plain, 1);
    EXPECT_NE(one, other);
    EXPECT_EQ(epochs(plain, 1), other);
    EXPECT_EQ(since().items, 200u);
  }
  EXPECT_EQ(since().items, 0u);
  EXPECT_EQ(read_ledger().live(Owner::cache), cached);
}

TEST_F(KeptByALoader, ABadSampleIsNotKeptAndItsBatchIsAsEver) {
  data_.corrupt = {42};
  const auto source = open_fake(data_);
  const Split split("train", 0, source->groups(0));
  LoaderOptions skipping = options(0, CachePolicy::planned), plain = options(0, std::nullopt);
  skipping.skip_bad_samples = plain.skip_bad_samples = true;
  Loader loader(source, split, {}, skipping), other(source, split, {}, plain);
  EXPECT_EQ(epochs(loader, 3), epochs(other, 3));
  EXPECT_EQ(loader.skipped_samples(), 3u);
}

TEST(SourceTraits, WhatIsNotToldMayDependOnTheKey) {
  FakeData data;
  EXPECT_TRUE(open_fake(data)->augments());
  data.keyless = true;
  EXPECT_FALSE(open_fake(data)->augments());
}

}  // namespace
}  // namespace headroom
