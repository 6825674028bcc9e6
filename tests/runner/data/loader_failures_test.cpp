// Loader: failures come in their place, name the sample, and may be skipped where that is asked for.
#include <gtest/gtest.h>

#include "../record/temporary_folder.hpp"
#include "data/normalizer.hpp"
#include "loader_trial.hpp"

namespace headroom {
namespace {

TEST(Loader, AFailureComesInItsPlaceAndNamesTheSample) {
  for (const int workers : {0, 1, 4}) {
    FakeData data;
    data.io_error = {45};
    data.delay_us = 200;
    const auto source = open_fake(data);
    LoaderOptions plain = options(workers);
    plain.shuffle = Shuffle::sequential;
    plain.skip_bad_samples = true;  // is for samples, not for disks
    Loader loader(source, train(*source), {}, plain);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(loader.next());  // 45 is the 26th of the split
    EXPECT_EQ(sentence_of([&] { loader.next(); }),
              "[fake] 'f.h5' cannot be read at record 45 (sample 45 of split 'train', group 'c')");
    EXPECT_TRUE(loader.next()) << "the next one can be asked for";
  }
}

TEST(Loader, ABadSampleFailsUnlessItMayBeSkipped) {
  FakeData data;
  data.corrupt = {2, 3, 45, 60, 61, 62, 63, 64, 65, 66};
  const auto source = open_fake(data);
  LoaderOptions plain = options(2);
  plain.shuffle = Shuffle::sequential;
  {
    Loader loader(source, train(*source), {}, plain);
    try {
      loader.next();
      FAIL() << "the bad sample went through";
    } catch (const Error& problem) {
      EXPECT_EQ(problem.exit_code(), Exit::data);
      EXPECT_STREQ(problem.what(), "[fake] 'f.h5' has a damaged record 2 (sample 2 of split 'train', group 'a')");
    }
  }
  plain.skip_bad_samples = true;
  for (const int workers : {0, 2}) {
    plain.num_workers = workers;
    Loader loader(source, train(*source), {}, plain);
    const auto first = loader.next();
    EXPECT_EQ(first->index, (std::vector<uint64_t>{0, 1, 4, 5, 6}));
    EXPECT_EQ(loader.skipped_samples(), 2u);
    EXPECT_EQ(first->fields[0].shape[0], 5);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(static_cast<const int64_t*>(first->fields[1].data)[i], static_cast<int64_t>(first->index[i]));
      EXPECT_EQ(first->key[i], hr_sample_key(11, 0, 0, first->index[i]));
    }
    uint64_t samples = first->count(), batches = 1;
    while (const auto batch = loader.next()) {
      EXPECT_EQ(batch->first, 7 * batches++) << "positions stay arithmetic";
      samples += batch->count();
    }
    EXPECT_EQ(batches, 12u);
    EXPECT_EQ(samples, 70u);
    EXPECT_EQ(loader.skipped_samples(), 10u);
  }
}

TEST(Loader, ANumberThatIsNoneIsABadSampleWhereThatIsAskedFor) {
  FakeData data;
  data.not_a_number = {3, 45};
  const auto source = open_fake(data);
  LoaderOptions plain = options(0);
  plain.shuffle = Shuffle::sequential;
  plain.skip_bad_samples = true;
  EXPECT_EQ(Loader(source, train(*source), {}, plain).next()->count(), 7u) << "a model may expect it";
  plain.skip_not_finite = true;
  Loader loader(source, train(*source), {}, plain);
  EXPECT_EQ(loader.next()->index, (std::vector<uint64_t>{0, 1, 2, 4, 5, 6}));
  while (loader.next()) continue;
  EXPECT_EQ(loader.skipped_samples(), 2u);
}

TEST(Loader, ABadSampleThatIsReadAgainIsCountedOnce) {
  FakeData data;
  data.corrupt = {2, 3, 9};
  const auto source = open_fake(data);
  LoaderOptions plain = options(0);
  plain.shuffle = Shuffle::sequential;
  plain.skip_bad_samples = true;
  for (const int workers : {0, 2}) {
    plain.num_workers = workers;
    Loader loader(source, train(*source), {}, plain);
    loader.seek(0, 0, /*continuous=*/true);
    loader.next();
    EXPECT_EQ(loader.skipped_samples(), 2u);
    testing::internal::CaptureStdout();
    loader.seek(0, 0, /*continuous=*/true);  // a window that ran out of memory
    loader.next();
    EXPECT_EQ(testing::internal::GetCapturedStdout().find("skipped"), std::string::npos);
    EXPECT_EQ(loader.skipped_samples(), 2u);
    while (loader.next()) {
    }
    EXPECT_EQ(loader.skipped_samples(), 3u);
    loader.next();
    EXPECT_EQ(loader.skipped_samples(), 5u) << "the next epoch";
    loader.seek(1, 0, /*continuous=*/true);
    loader.next();
    EXPECT_EQ(loader.skipped_samples(), 5u);
  }
}

TEST(Loader, ABatchMayLoseAllItsSamples) {
  FakeData data;
  for (uint64_t i = 0; i < 7; ++i) data.corrupt.insert(i);
  const auto source = open_fake(data);
  LoaderOptions plain = options(1);
  plain.shuffle = Shuffle::sequential;
  plain.skip_bad_samples = true;
  Loader loader(source, train(*source), Normalizer::measure(*source, {"train", 0, {source->groups(0)[3]}}, "exact", 0),
                plain);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->count(), 0u);
  EXPECT_EQ(batch->fields[0].shape[0], 0);
  EXPECT_EQ(loader.next()->count(), 7u);
}

TEST(Loader, AFailureThatDoesNotRepeatIsStillOne) {
  FakeData data;
  data.corrupt_in_company = {4};
  const auto source = open_fake(data);
  LoaderOptions plain = options(0);
  plain.shuffle = Shuffle::sequential;
  Loader loader(source, train(*source), {}, plain);
  EXPECT_EQ(sentence_of([&] { loader.next(); }), "[fake] record 4 dislikes company (among 7 samples of split 'train')");
}

TEST(Loader, OtherFailuresPassAsTheyAre) {
  FakeData data;
  data.refused = {0};
  const auto source = open_fake(data);
  LoaderOptions plain = options(2);
  plain.shuffle = Shuffle::sequential;
  plain.skip_bad_samples = true;
  Loader loader(source, train(*source), {}, plain);
  try {
    loader.next();
    FAIL() << "the failure was lost";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::plugin);
  }
}

TEST(Loader, RefusesABatchOfNothing) {
  FakeData data;
  const auto source = open_fake(data);
  EXPECT_EQ(sentence_of([&] { Loader(source, train(*source), {}, options(0, 0)); }),
            "[data] train.batch_size is 0; at least 1 is needed");
}

}  // namespace
}  // namespace headroom
