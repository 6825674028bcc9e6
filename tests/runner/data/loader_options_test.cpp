#include <gtest/gtest.h>

#include "data/loader.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20;

LoaderOptions reading(int num_workers, int prefetch_factor, int64_t prefetch_bytes) {
  LoaderOptions options;
  options.num_workers = num_workers;
  options.prefetch_factor = prefetch_factor;
  options.prefetch_bytes = prefetch_bytes;
  return options;
}

TEST(ReadAhead, IsBoundedInBatches) {
  EXPECT_EQ(batches_ahead(reading(2, 3, 512 * mib), mib), 6u);
  EXPECT_EQ(batches_ahead(reading(0, 3, 512 * mib), mib), 0u) << "nothing is read before it is asked for";
}

TEST(ReadAhead, IsBoundedInBytes) {
  EXPECT_EQ(batches_ahead(reading(2, 2, 512 * mib), 128 * mib), 4u);
  EXPECT_EQ(batches_ahead(reading(2, 2, 512 * mib), 129 * mib), 3u);
  EXPECT_EQ(batches_ahead(reading(8, 4, 512 * mib), 129 * mib), 3u);
  EXPECT_EQ(batches_ahead(reading(2, 2, 512 * mib), 600 * mib), 1u) << "one is always read";
  EXPECT_EQ(batches_ahead(reading(2, 2, 0), mib), 1u);
}

TEST(ReadAhead, WhileTheDiskIsWaitedForIsLittleBesideTheRun) {
  EXPECT_EQ(disk_ahead_bytes(64 * mib, /*training=*/true), 8 * mib);
  EXPECT_EQ(disk_ahead_bytes(64 * mib, /*training=*/false), 4 * mib);
  EXPECT_EQ(disk_ahead_bytes(4096 * mib, /*training=*/true), 16 * mib) << "more buys nothing";
  EXPECT_EQ(disk_ahead_bytes(4096 * mib, /*training=*/false), 8 * mib);
}

TEST(ReadAhead, ASlotForEachAndForTheBatchesInUse) {
  LoaderOptions options = reading(2, 2, 512 * mib);
  EXPECT_EQ(slot_count(options, 20 * mib), 5u);
  EXPECT_EQ(slot_count(options, 300 * mib), 2u);
  options.extra_slots = 1;
  EXPECT_EQ(slot_count(options, 20 * mib), 6u);
  EXPECT_EQ(slot_count(options, 2 * mib), 10u) << "8 while the disk is waited for";
  EXPECT_EQ(slot_count(reading(0, 2, 512 * mib), mib), 1u);
  EXPECT_EQ(slot_count(options, 2 * mib, 3), 4u) << "no more than there are batches";
  EXPECT_EQ(slot_count(options, 2 * mib, 0), 2u);
  EXPECT_EQ(batches_in_all(options, 3), INT64_MAX);
  options.epochs = 2;
  EXPECT_EQ(batches_in_all(options, 3), 6);
}

TEST(ReadAhead, SmallBatchesKeepTheDiskBusy) {
  EXPECT_EQ(batches_ahead_of_disk(reading(2, 2, 512 * mib), mib), 16u);
  EXPECT_EQ(batches_ahead_of_disk(reading(2, 2, 512 * mib), 3 * mib), 5u) << "as many as 16 MiB hold";
  EXPECT_EQ(batches_ahead_of_disk(reading(2, 2, 512 * mib), 20 * mib), 4u);
  EXPECT_EQ(batches_ahead_of_disk(reading(8, 4, 512 * mib), mib), 32u);
  EXPECT_EQ(batches_ahead_of_disk(reading(2, 2, 3 * mib), mib), 3u) << "what was told is never passed";
  EXPECT_EQ(batches_ahead_of_disk(reading(2, 2, 0), mib), 1u);
  EXPECT_EQ(batches_ahead_of_disk(reading(0, 2, 512 * mib), mib), 0u);
}

TEST(ReadAhead, ReadsThatWaitAreNoMoreThanBatchesAhead) {
  EXPECT_EQ(extra_readers(reading(2, 2, 512 * mib), 4), 2u);
  EXPECT_EQ(extra_readers(reading(2, 16, 512 * mib), 32), 14u);
  EXPECT_EQ(extra_readers(reading(2, 2, 512 * mib), 1), 0u);
  EXPECT_EQ(extra_readers(reading(0, 2, 512 * mib), 0), 0u);
}

TEST(LargerBatches, AreOfSmallSamplesAndReadAheadNoFurther) {
  const auto enlarged = [](int64_t batch_size, int64_t sample_bytes, uint64_t parts = 1) {
    LoaderOptions options = reading(2, 4, 512 * mib);
    options.batch_size = batch_size;
    options.share = {0, parts};
    return in_larger_batches(options, {sample_bytes});
  };
  EXPECT_EQ(enlarged(2, 64).batch_size, 64);
  EXPECT_EQ(enlarged(3, 64).batch_size, 48) << "whole batches of training";
  EXPECT_EQ(enlarged(2, mib / 8).batch_size, 8) << "1 MiB";
  EXPECT_EQ(enlarged(2, mib).batch_size, 2);
  EXPECT_EQ(enlarged(100, 64).batch_size, 100);
  EXPECT_EQ(enlarged(4, 64, 2).batch_size, 128) << "64 for each of two processes";
  EXPECT_EQ(enlarged(2, mib / 4).prefetch_factor, 2);
  EXPECT_EQ(enlarged(2, 64).prefetch_factor, 1);
}

}  // namespace
}  // namespace headroom
