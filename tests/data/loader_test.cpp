// Loader: the same batches for any number of threads, in order, in reused memory; failures in their place; an end at
// any time.

#include "data/loader.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <sys/resource.h>
#include <thread>

#include "../record/temporary_folder.hpp"
#include "data/loader_report.hpp"
#include "data/pause.hpp"
#include "data/slots.hpp"
#include "fake_source.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/relief.hpp"

namespace headroom {
namespace {

LoaderOptions options(int workers, int64_t batch = 7) {
  LoaderOptions all;
  all.seed = 11;
  all.batch_size = batch;
  all.shuffle = Shuffle::global;
  all.augment = true;
  all.num_workers = workers;
  return all;
}

Split train(const Source& source) {
  return {"train", 0, {source.groups(0)[0], source.groups(0)[2], source.groups(0)[3]}};
}  // 80 samples

// Everything a batch says, as bytes.
std::string content(const Batch& batch) {
  std::string bytes = std::to_string(batch.epoch) + "," + std::to_string(batch.first) + ",";
  for (size_t i = 0; i < batch.index.size(); ++i)
    bytes += std::to_string(batch.index[i]) + ":" + std::to_string(batch.key[i]) + " ";
  for (const DLTensor& field : batch.fields) {
    uint64_t size = field.dtype.bits / 8;
    for (int axis = 0; axis < field.ndim; ++axis) size *= static_cast<uint64_t>(field.shape[axis]);
    bytes.append(static_cast<const char*>(field.data), size);
  }
  return bytes;
}

std::vector<std::string> epoch_of(Loader& loader) {
  std::vector<std::string> all;
  while (const auto batch = loader.next()) all.push_back(content(*batch));
  return all;
}

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

// While the one worker waits for the disk, as many others read as batches may be read ahead, and one computes.
TEST(Loader, ReadsWiderThanItDecodes) {
  FakeData data;
  std::atomic<int> waiting{0}, most_waiting{0}, computing{0}, most_computing{0};
  const auto raise = [](std::atomic<int>& most, int value) {
    for (int seen = most; seen < value && !most.compare_exchange_weak(seen, value);) continue;
  };
  data.during_read = [&] {
    {
      const Pause pause(PauseFor::disk);
      raise(most_waiting, ++waiting);
      for (int i = 0; i < 2000 && most_waiting < 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --waiting;
    }
    raise(most_computing, ++computing);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --computing;
  };
  const auto source = open_fake(data);
  LoaderOptions all = options(1);
  all.prefetch_factor = 4;
  std::vector<std::string> wide;
  {
    Loader loader(source, train(*source), {}, all);
    loader.seek(3);
    wide = epoch_of(loader);
    EXPECT_GT(loader.times().disk, 0);
  }
  EXPECT_EQ(most_waiting, 4);
  EXPECT_EQ(most_computing, 1);
  EXPECT_GE(data.readers_opened, 4);

  data.during_read = nullptr;
  data.readers_opened = 0;
  Loader warm(source, train(*source), {}, all);
  warm.seek(3);
  EXPECT_TRUE(epoch_of(warm) == wide);
  EXPECT_EQ(data.readers_opened, 1) << "nobody waits, nobody stands in";
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
  const auto line = [&](const LoaderTimes& times) { return loader_line(times, 100, data, 4); };
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

TEST(Loader, ReusesItsSlots) {
  FakeData data;
  const auto source = open_fake(data);
  LoaderOptions all = options(2);
  all.prefetch_factor = 2;
  Loader loader(source, train(*source), {}, all);
  loader.seek(0, 0, true);
  std::set<const void*> slots;
  for (int i = 0; i < 60; ++i) {
    if (const auto batch = loader.next()) slots.insert(batch->fields[0].data);
  }
  EXPECT_LE(slots.size(), 5u) << "prefetch_factor * num_workers, and the one in use";
}

TEST(Loader, LargeSlotsBeginAtAHugePage) {
  FakeData data;
  data.channels = 100'000;
  const auto source = open_fake(data);
  for (const int64_t batch : {1, 2, 3}) {
    Loader loader(source, train(*source), {}, options(2, batch));
    const auto first = loader.next();
    const uint64_t bytes = static_cast<uint64_t>(batch) * 100'000 * fake_times * sizeof(float);
    if (bytes < 2 << 20) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first->fields[0].data) % (2 << 20), 0u);
  }
}

std::atomic<int64_t> page_locked_bytes{0};
std::atomic<int> page_locks{0};

TEST(Loader, SlotsArePageLockedByWhoHasADevice) {
  FakeData data;
  const auto source = open_fake(data);
  set_page_lock({[](void* memory, size_t bytes) {
                   page_locked_bytes += static_cast<int64_t>(bytes);
                   return memory != nullptr && ++page_locks % 2 == 0;  // every other one fails
                 },
                 [](void*) { --page_locks; }});
  {
    Loader loader(source, train(*source), {}, options(2));
    loader.seek(0);
    EXPECT_EQ(page_locked_bytes, read_ledger().live(Owner::batches));
    EXPECT_EQ(page_locks, 5);
    EXPECT_EQ(epoch_of(loader).size(), 12u);
  }
  EXPECT_EQ(page_locks, 3) << "the two that were locked were unlocked";
  set_page_lock({});
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;  // whose allocators and shadows fault when they please
#else
constexpr bool is_sanitized = false;
#endif

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(Loader, TouchesNoNewMemoryOnceItRuns) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer touches memory of its own";
  FakeData data;
  data.channels = 4'000;
  data.delay_us = 50;
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, train(*source), "sampled", 10);
  for (const int workers : {0, 1, 3}) {
    Loader loader(source, train(*source), normalizer, options(workers));
    loader.seek(0, 0, /*continuous=*/true);
    for (int i = 0; i < 40; ++i) loader.next();
    const long before = minor_faults();
    for (int i = 0; i < 120; ++i) loader.next();
    const long faults = minor_faults() - before;
    // 110 batches are 12,000 pages; the stack of a thread that comes late, or malloc's arena, may grow by a few.
    EXPECT_LE(faults, 30) << "with " << workers << " threads";
  }
}

// What the relief rung "batches read ahead" leaves of the loaders' memory. A batch that is being read goes the next
// time.
int64_t left_after_relief(int64_t expected = 0) {
  for (int i = 0; i < 2000; ++i) {
    give_back_memory(std::numeric_limits<int64_t>::max());
    if (read_ledger().live(Owner::batches) <= expected) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return read_ledger().live(Owner::batches);
}

TEST(Loader, AtRestItGivesBackItsLastSlot) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 1, 3}) {
    Loader loader(source, train(*source), {}, options(workers));
    loader.seek(0);
    EXPECT_GT(read_ledger().live(Owner::batches), 0);
    EXPECT_EQ(left_after_relief(), 0) << "nothing was asked for yet";
    const auto first = epoch_of(loader);
    ASSERT_EQ(first.size(), 12u) << "with " << workers << " threads";
    EXPECT_GT(read_ledger().live(Owner::batches), 0);
    EXPECT_EQ(left_after_relief(), 0) << "the epoch is over";
    loader.seek(0);
    EXPECT_EQ(epoch_of(loader), first);

    loader.seek(4, 0, /*continuous=*/true);
    epoch_of(loader);
    EXPECT_EQ(left_after_relief(), 0) << "what was read ahead of the next epoch is read again";
    const auto next_epoch = epoch_of(loader);
    loader.seek(5);
    EXPECT_TRUE(epoch_of(loader) == next_epoch) << "with " << workers << " threads";
  }
}

TEST(Loader, InTheMiddleOfAnEpochItKeepsOneSlot) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 2}) {
    Loader loader(source, train(*source), {}, options(workers));
    loader.seek(0);
    const int64_t slot = read_ledger().live(Owner::batches) / static_cast<int64_t>(slot_count(options(workers), 1));
    auto batch = loader.next();
    EXPECT_EQ(left_after_relief(slot), slot) << "the one in use";
    const std::string before = content(*batch);
    give_back_memory(std::numeric_limits<int64_t>::max());
    EXPECT_EQ(content(*batch), before);
    batch.reset();
    give_back_memory(std::numeric_limits<int64_t>::max());
    EXPECT_EQ(read_ledger().live(Owner::batches), slot) << "the next one goes there";
    EXPECT_EQ(epoch_of(loader).size(), 11u);
  }
}

// A batch that finds no room fails in its place; sought again once there is some, it comes.
TEST(Loader, GoesOnAfterItRanOutOfMemory) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 2}) {
    Loader loader(source, train(*source), {}, options(workers));
    loader.seek(2);
    const auto all = epoch_of(loader);
    loader.seek(2);
    std::vector<std::string> batches = {content(*loader.next()), content(*loader.next())};
    loader.seek(2, 14);
    EXPECT_EQ(left_after_relief(), 0);
    set_memory_limit(1);
    EXPECT_THROW(loader.next(), std::bad_alloc);
    EXPECT_GT(take_refusal().bytes, 0) << "how much it was is known";
    set_memory_limit(0);
    loader.seek(2, 14);
    for (std::string& batch : epoch_of(loader)) batches.push_back(std::move(batch));
    EXPECT_TRUE(batches == all);
  }
}

TEST(Loader, AConsumerThatHoldsManyBatchesGetsMoreMemoryRatherThanADeadlock) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 1, 3}) {
    Loader loader(source, train(*source), {}, options(workers));
    std::vector<Batch> held;
    std::vector<std::string> as_delivered;
    while (auto batch = loader.next()) {
      as_delivered.push_back(content(*batch));
      held.push_back(std::move(*batch));
    }
    ASSERT_EQ(held.size(), 12u);
    for (size_t i = 0; i < held.size(); ++i)
      EXPECT_EQ(content(held[i]), as_delivered[i]) << "a batch in use was written over";
  }
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
