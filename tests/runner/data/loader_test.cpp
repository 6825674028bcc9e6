// Loader: the same batches for any number of threads, in order; an end at any time.
#include "data/loader.hpp"

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <thread>

#include "arrays/read_hooks.hpp"
#include "data/data_report.hpp"
#include "data/slots.hpp"
#include "loader_trial.hpp"
#include "memory/ledger.hpp"

namespace headroom {
namespace {

TEST(Loader, DeliversAnEpochInOrder) {
  FakeData data;
  const auto source = open_fake(data);
  LoaderOptions plain = options(0);
  plain.shuffle = Shuffle::sequential;
  plain.augment = false;
  Loader loader(source, train(*source), {}, plain);
  EXPECT_EQ(loader.samples_per_epoch(), 80u);
  EXPECT_EQ(loader.batches_per_epoch(), 12u);
  loader.seek(0);
  std::vector<uint64_t> seen;
  uint64_t batches = 0;
  while (const auto batch = loader.next()) {
    EXPECT_EQ(batch->first, 7 * batches++);
    ASSERT_EQ(batch->fields.size(), 3u);
    EXPECT_EQ(batch->fields[0].ndim, 3);
    EXPECT_EQ(batch->fields[0].shape[0], static_cast<int64_t>(batch->count()));
    EXPECT_EQ(batch->fields[0].shape[1], fake_times);
    EXPECT_EQ(batch->fields[0].shape[2], 3);
    EXPECT_EQ(batch->fields[1].ndim, 1);
    for (const DLTensor& field : batch->fields) EXPECT_EQ(reinterpret_cast<uintptr_t>(field.data) % 64, 0u);
    for (uint64_t i = 0; i < batch->count(); ++i) {
      const auto* x = static_cast<const float*>(batch->fields[0].data) + i * 12;
      EXPECT_EQ(x[11], static_cast<float>(fake_value(batch->index[i], 3, 2)));
      EXPECT_EQ(static_cast<const int64_t*>(batch->fields[1].data)[i], static_cast<int64_t>(batch->index[i]));
      EXPECT_EQ(batch->key[i], hr_sample_key(11, 0, 0, batch->index[i]));
      seen.push_back(batch->index[i]);
    }
  }
  EXPECT_EQ(batches, 12u);
  ASSERT_EQ(seen.size(), 80u);
  EXPECT_EQ(seen[9], 9u);
  EXPECT_EQ(seen[10], 30u) << "group b is not of this split";
  EXPECT_FALSE(loader.next()) << "not continuous: the end stays";
}

TEST(Loader, ReadsNothingBeyondTheLastEpoch) {
  FakeData data;
  const auto source = open_fake(data);
  LoaderOptions two_epochs = options(2);
  two_epochs.epochs = 2;
  two_epochs.prefetch_factor = 1000;
  {
    Loader loader(source, train(*source), Normalizer(), two_epochs);
    loader.seek(0, 0, true);
    for (int epoch = 0; epoch < 2; ++epoch) epoch_of(loader);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(data.reads, 2 * 12);
    EXPECT_EQ(epoch_of(loader).size(), 12u) << "one that is asked for all the same";
  }
}

TEST(Loader, BatchesAreTheSameForAnyNumberOfThreads) {
  FakeData data;
  data.delay_us = 300;
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, train(*source), "exact", 0);
  for (const Shuffle shuffle : {Shuffle::global, Shuffle::grouped}) {
    std::vector<std::vector<std::string>> runs;
    for (const int workers : {0, 1, 2, 4, 8}) {
      for (const bool persistent : {true, false}) {
        LoaderOptions all = options(workers);
        all.persistent_workers = persistent;
        all.shuffle = shuffle;
        all.grouping = {3, 9};
        Loader loader(source, train(*source), normalizer, all);
        loader.seek(3, 0, true);
        std::vector<std::string> batches;
        for (int epoch = 0; epoch < 3; ++epoch) {
          for (std::string& batch : epoch_of(loader)) batches.push_back(std::move(batch));
        }
        runs.push_back(std::move(batches));
      }
    }
    ASSERT_EQ(runs[0].size(), 36u);
    for (const auto& run : runs) EXPECT_TRUE(run == runs[0]);
  }
  EXPECT_EQ(data.readers_open, 0);
}

// While the one worker waits for the disk, others read as many batches as there is room for, and one computes.
// Readers wait for each other until `hoped_for` do, for 100 ms where so many are not to come.
void read_wide(LoaderOptions all, int batches_under_way, int hoped_for) {
  FakeData data;
  std::atomic<int> waiting{0}, most_waiting{0}, computing{0}, most_computing{0};
  const auto raise = [](std::atomic<int>& most, int value) {
    for (int seen = most; seen < value && !most.compare_exchange_weak(seen, value);) continue;
  };
  data.during_read = [&] {
    {
      const Pause pause(PauseFor::disk);
      raise(most_waiting, ++waiting);
      for (int i = 0; i < (hoped_for > batches_under_way ? 100 : 2000) && most_waiting < hoped_for; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --waiting;
    }
    raise(most_computing, ++computing);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --computing;
  };
  const auto source = open_fake(data);
  std::vector<std::string> wide;
  {
    Loader loader(source, train(*source), {}, all);
    loader.seek(3);
    wide = epoch_of(loader);
    EXPECT_GT(loader.times().disk, 0);
  }
  EXPECT_EQ(most_waiting, batches_under_way);
  EXPECT_EQ(most_computing, 1);
  EXPECT_GE(data.readers_opened, batches_under_way);

  data.during_read = nullptr;
  data.readers_opened = 0;
  Loader warm(source, train(*source), {}, all);
  warm.seek(3);
  EXPECT_TRUE(epoch_of(warm) == wide);
  EXPECT_EQ(data.readers_opened, 1) << "nobody waits, nobody stands in";
}

TEST(Loader, ReadsWiderThanItDecodes) {
  LoaderOptions all = options(1);
  all.prefetch_factor = 2;
  read_wide(all, 12, 12);  // the epoch
}

TEST(Loader, ReadsNoWiderThanItMayReadAhead) {
  LoaderOptions all = options(1);
  all.prefetch_bytes = 4 * slot_bytes(std::array<int64_t, 1>{1}, 1);  // as much as one small batch takes
  read_wide(all, 4, 5);
}

TEST(Loader, ReadsNotSoWideWhereReadersNeedMuchMemory) {
  const std::vector<char> scratch(20 << 20, 1);
  account(Owner::scratch, 20 << 20);
  read_wide(options(1), 7, 8);
  account(Owner::scratch, -(20 << 20));
}

// A plugin may hold a lock of its own while it waits for the disk: who has the turn then waits for that lock.
TEST(Loader, APluginThatReadsUnderALockIsNoDeadlock) {
  FakeData data;
  std::mutex lock;
  data.during_read = [&] {
    const std::lock_guard alone(lock);
    const Pause pause(PauseFor::disk);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto source = open_fake(data);
  LoaderOptions all = options(1);
  all.prefetch_factor = 4;
  Loader loader(source, train(*source), {}, all);
  EXPECT_EQ(epoch_of(loader).size(), 12u);
}

TEST(Loader, KnowsWhereItsTimeGoes) {
  FakeData data;
  data.during_read = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const auto source = open_fake(data);
  for (const int workers : {0, 2}) {
    Loader loader(source, train(*source), {}, options(workers));
    epoch_of(loader);
    const LoaderTimes times = loader.times();
    EXPECT_EQ(times.batches, 12u);
    EXPECT_GE(times.decode, 12e-3);
    EXPECT_EQ(times.disk, 0);
    EXPECT_GT(times.stall, 0);
    EXPECT_EQ(times.idle > 0, workers > 0);
  }
}

TEST(LoaderReport, SaysWhetherTheLoaderIsTheBottleneckAndWhatToSet) {
  DataSection data;
  const auto line = [&](const LoaderTimes& times) { return loader_line(times, {}, 100, data, 4); };
  EXPECT_EQ(line({}), "");
  LoaderTimes times{.disk = 1, .decode = 8, .normalize = 1, .stall = 1.2, .batches = 10};
  EXPECT_EQ(line(times), "the loader kept up: the model waited 1.2 % of the time");
  times.stall = 43;
  EXPECT_EQ(line(times),
            "the loader is the bottleneck: the model waited 43 % of the time; its readers spent 80 % decoding, 10 % "
            "waiting for the disk, 10 % normalising: raise data.num_workers (2; 4 processors are there)");
  data.num_workers = 0;
  EXPECT_NE(line(times).find(": set data.num_workers to 1 or more"), std::string::npos);
  data.num_workers = 2;
  times.disk = 20;
  EXPECT_NE(line(times).find(": raise data.prefetch_factor"), std::string::npos);
}

TEST(LoaderReport, SaysWhenReadersAreMoreThanHalfOfTheProcessors) {
  DataSection data;
  EXPECT_EQ(workers_line(data, 1), "") << "what is usual";
  data.num_workers = 8;
  EXPECT_EQ(workers_line(data, 16), "");
  EXPECT_EQ(workers_line(data, 15),
            "data.num_workers is 8, more than half of the 15 processors this run may use: readers take them from the "
            "model; 7 is a good rule, more where a run ends with the loader as its bottleneck");
  data.num_workers = 3;
  EXPECT_NE(workers_line(data, 1).find("the 1 processor this run may use"), std::string::npos);
}

TEST(Loader, TrainingKeysChangeWithTheEpochAndEvaluationKeysDoNot) {
  FakeData data;
  const auto source = open_fake(data);
  const auto keys = [&](bool augment, uint64_t epoch) {
    LoaderOptions all = options(0, 80);
    all.augment = augment;
    Loader loader(source, train(*source), {}, all);
    loader.seek(epoch);
    const auto batch = loader.next();
    std::map<uint64_t, uint64_t> by_index;
    for (uint64_t i = 0; i < batch->count(); ++i) {
      by_index[batch->index[i]] = batch->key[i];
      const double draw = static_cast<const double*>(batch->fields[2].data)[i];
      EXPECT_EQ(draw, augment ? hr_uniform_f64(hr_philox64(batch->key[i], 1, 0)) : -1.0);
    }
    return by_index;
  };
  EXPECT_NE(keys(true, 0), keys(true, 1));
  EXPECT_EQ(keys(false, 0), keys(false, 1));
}

TEST(Loader, ResumesInTheMiddleOfAnEpoch) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 3}) {
    LoaderOptions grouped = options(workers);
    if (workers > 0) grouped.shuffle = Shuffle::grouped, grouped.grouping = {2, 11};
    Loader loader(source, train(*source), {}, grouped);
    loader.seek(5, 0, true);
    const auto all = epoch_of(loader);
    loader.seek(5, 28, true);
    EXPECT_EQ(epoch_of(loader), std::vector<std::string>(all.begin() + 4, all.end()));
    const auto next_epoch = epoch_of(loader);
    loader.seek(6);
    EXPECT_EQ(epoch_of(loader), next_epoch);
    loader.seek(6, 84);
    EXPECT_FALSE(loader.next()) << "a position behind the end is the end";
  }
}

TEST(Loader, SamplesPerEpochCutsTheTail) {
  FakeData data;
  const auto source = open_fake(data);
  LoaderOptions all = options(2, 8);
  all.samples_per_epoch = 20;
  Loader loader(source, train(*source), {}, all);
  EXPECT_EQ(loader.batches_per_epoch(), 3u);
  std::set<uint64_t> seen;
  uint64_t samples = 0;
  while (const auto batch = loader.next()) {
    samples += batch->count();
    seen.insert(batch->index.begin(), batch->index.end());
  }
  EXPECT_EQ(samples, 20u);
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_GT(*seen.rbegin(), 30u) << "20 of all samples, not the first 20";
}

TEST(Loader, AnEmptySplitEndsAtOnce) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 2}) {
    Loader loader(source, {"val", 0, {}}, {}, options(workers));
    loader.seek(0, 0, true);
    EXPECT_FALSE(loader.next());
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, AConsumerMayLookAfterOtherThingsWhileItWaits) {
  FakeData data;
  std::atomic<bool> may_read = false;
  data.during_read = [&] {
    while (!may_read) std::this_thread::yield();
  };
  const auto source = open_fake(data);
  Loader loader(source, train(*source), {}, options(2)), other(source, train(*source), {}, options(0));
  for (int look = 0; look < 3; ++look) EXPECT_FALSE(loader.wait_until(std::chrono::steady_clock::now()));
  may_read = true;
  std::vector<std::string> all;
  while (true) {
    while (!loader.wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(1))) continue;
    const auto batch = loader.next();
    if (!batch) break;
    all.push_back(content(*batch));
  }
  EXPECT_TRUE(other.wait_until({})) << "it reads in next()";
  EXPECT_TRUE(all == epoch_of(other));
}

TEST(Loader, ABatchOutlivesItsLoader) {
  FakeData data;
  const auto source = open_fake(data);
  std::optional<Batch> batch;
  std::string before;
  {
    Loader loader(source, train(*source), {}, options(2));
    batch = loader.next();
    before = content(*batch);
  }
  EXPECT_EQ(content(*batch), before);
}

TEST(Loader, EndsAtAnyTime) {
  FakeData data;
  data.delay_us = 500;
  const auto source = open_fake(data);
  for (int batches = 0; batches < 15; ++batches) {
    Loader loader(source, train(*source), {}, options(4));
    loader.seek(0, 0, true);
    for (int i = 0; i < batches; ++i) loader.next();
    if (batches % 3 == 0) loader.seek(1, 14, true);
  }
  EXPECT_EQ(data.readers_open, 0);
}

TEST(Loader, PersistentWorkersKeepTheirReaders) {
  FakeData data;
  const auto source = open_fake(data);
  for (const bool persistent : {true, false}) {
    data.readers_opened = 0;
    LoaderOptions all = options(1);
    all.persistent_workers = persistent;
    Loader loader(source, train(*source), {}, all);
    loader.seek(0, 0, true);
    for (int epoch = 0; epoch < 4; ++epoch) epoch_of(loader);
    EXPECT_EQ(data.readers_open, persistent ? 1 : 0) << "without persistence the epoch's end is the readers' end";
    EXPECT_EQ(data.readers_opened, persistent ? 1 : 4);
  }
}

}  // namespace
}  // namespace headroom
