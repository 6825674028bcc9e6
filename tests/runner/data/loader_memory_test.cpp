// Loader: slots are reused, page-locked, given back when memory is short, and never written over while in use.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <limits>
#include <pthread.h>
#include <set>
#include <sys/resource.h>
#include <thread>

#include "data/slots.hpp"
#include "loader_trial.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// On this thread: every try_lock finds that somebody has the mutex just then.
static thread_local bool all_are_locked = false;

extern "C" int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static const auto real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
  return all_are_locked ? EBUSY : real(mutex);
}
#endif

namespace headroom {
namespace {

TEST(Loader, ReusesItsSlots) {
  FakeData data;
  const auto source = open_fake(data);
  LoaderOptions all = options(2);
  all.prefetch_factor = 2;
  for (int time = 0; time < 20; ++time) {  // two readers may see the same need
    Loader loader(source, train(*source), {}, all);
    loader.seek(0, 0, true);
    std::set<const void*> slots;
    for (int i = 0; i < 60; ++i) {
      if (const auto batch = loader.next()) slots.insert(batch->fields[0].data);
    }
    EXPECT_LE(slots.size(), 5u) << "prefetch_factor * num_workers, and the one in use";
  }
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
  reset_ledger_peaks();
  int slots = 0;
  FakeData data;
  const auto source = open_fake(data);
  LoaderOptions locked = options(2);
  locked.page_lock = {[](void* memory, size_t bytes) {
                        page_locked_bytes += static_cast<int64_t>(bytes);
                        return memory != nullptr && ++page_locks % 2 == 0;  // every other one fails
                      },
                      [](void*) { --page_locks; }};
  {
    Loader loader(source, train(*source), {}, locked);
    EXPECT_EQ(epoch_of(loader).size(), 12u);
    EXPECT_EQ(page_locked_bytes, read_ledger().peak_bytes[static_cast<size_t>(Owner::batches)]);
    EXPECT_GE(page_locks, 5) << "as many slots as are usual";
    slots = page_locks;
  }
  EXPECT_EQ(page_locks, slots - slots / 2) << "those that were locked were unlocked";
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

// What the relief rung "batches read ahead" leaves of the loaders' memory. A batch that is being read, and a slot that
// is being made, go the next time.
int64_t left_after_relief(int64_t expected = 0) {
  for (int i = 0, in_a_row = 0; i < 2000 && in_a_row < 20; ++i) {
    give_back_memory(std::numeric_limits<int64_t>::max());
    in_a_row = read_ledger().live(Owner::batches) <= expected ? in_a_row + 1 : 0;
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
    while (workers > 0 && read_ledger().live(Owner::batches) == 0) std::this_thread::yield();
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Who shrinks a run must find the memory free afterwards, also where a reader holds the mutex just then.
TEST(Loader, TightenedItDropsItsSlotsWhoeverHoldsTheMutex) {
  FakeData data;
  const auto source = open_fake(data);
  Loader loader(source, train(*source), {}, options(0));
  epoch_of(loader);
  ASSERT_GT(read_ledger().live(Owner::batches), 0);
  const auto all = rungs();
  const auto rung = std::ranges::find_if(all, [](const auto& each) { return each->name == "batches read ahead"; });
  all_are_locked = true;
  EXPECT_EQ((*rung)->give_back(1), 0) << "in the middle of an allocation nobody may wait";
  (*rung)->tighten();
  all_are_locked = false;
  EXPECT_EQ(read_ledger().live(Owner::batches), 0);
  (*rung)->relax();
  loader.seek(0);
  EXPECT_EQ(epoch_of(loader).size(), 12u);
}
#endif

// A reader that has just read a batch lends nobody its slot any more.
TEST(Loader, TightenedWhileABatchIsReadItDropsThatSlotToo) {
  FakeData data;
  std::atomic<bool> tightens = false;
  data.during_read = [&] {
    while (!tightens) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // until somebody waits for this batch
  };
  const auto source = open_fake(data);
  for (int time = 0; time < 100; ++time) {
    tightens = false;
    Loader loader(source, train(*source), {}, options(1));
    loader.seek(0);
    while (data.in_flight == 0) std::this_thread::yield();
    const auto all = rungs();
    const auto rung = std::ranges::find_if(all, [](const auto& each) { return each->name == "batches read ahead"; });
    tightens = true;
    (*rung)->tighten();
    EXPECT_EQ(read_ledger().live(Owner::batches), 0);
    (*rung)->relax();
  }
}

// Its slot may be the only one that fits.
TEST(Loader, SeekingWaitsForWhatIsBeingRead) {
  FakeData data;
  std::atomic<bool> goes_on = false;
  data.during_read = [&] {
    while (!goes_on) std::this_thread::yield();
  };
  const auto source = open_fake(data);
  Loader loader(source, train(*source), {}, options(2));
  loader.seek(0);
  while (data.in_flight == 0) std::this_thread::yield();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    goes_on = true;
  });
  loader.seek(0, 7);
  EXPECT_TRUE(goes_on);
  other.join();
  EXPECT_EQ(epoch_of(loader).size(), 11u);
}

std::shared_ptr<const Source> open_large(FakeData& data) {
  data.channels = 100'000;
  return open_fake(data);
}

int64_t bytes_of_slot(const Source& source) { return static_cast<int64_t>(Slot(source.fields(), 8).bytes()); }

void leave_room_for_one(int64_t slot_bytes) {
  const int64_t free = slot_bytes + slot_bytes / 2;
  set_memory_limit(held_bytes() + free + cushion_bytes(held_bytes() + free));
}

TEST(SlotPool, MakesMoreThanTheUsualSlotsOnlyWhereNoneIsFree) {
  FakeData data;
  const auto source = open_fake(data);
  const auto pool = std::make_shared<SlotPool>(source->fields(), 8, /*most=*/2, /*usual=*/1);
  ASSERT_TRUE(pool->begin_to_grow());
  pool->grow();
  EXPECT_FALSE(pool->begin_to_grow()) << "one is free";
  const std::shared_ptr<Slot> lent = pool->lend(pool->reserve());
  ASSERT_TRUE(pool->begin_to_grow()) << "none is free";
  EXPECT_FALSE(pool->begin_to_grow()) << "one is being made";
  pool->grow();
  EXPECT_TRUE(pool->has_free());
  EXPECT_FALSE(pool->begin_to_grow()) << "there are as many as there may be";
}

// Growing is a convenience: it neither takes from the ladder nor hides what others were refused.
TEST(SlotPool, GrowsWithoutTakingFromOthers) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer holds memory of its own";
  FakeData data;
  const auto source = open_large(data);
  const auto pool = std::make_shared<SlotPool>(source->fields(), 8, 1, 1);
  const int64_t slot = bytes_of_slot(*source);
  std::atomic<int> asked = 0;
  const RungRegistration rung = add_rung({.name = "asked", .order = 1, .give_back = [&](int64_t) -> int64_t {
                                            ++asked;
                                            return 0;
                                          }});
  leave_room_for_one(slot);  // of the two
  take_refusal();
  note_refusal(77);
  std::atomic<bool> ended = false;
  std::thread other([&] {
    while (!ended) {
      {
        const Permit permit = try_to_grow(slot);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  int grown = 0;
  for (int i = 0; i < 2000; ++i) {
    pool->may_grow_again();
    if (pool->begin_to_grow()) pool->grow();
    if (pool->drop_free(0, slot) > 0) ++grown;
  }
  ended = true;
  other.join();
  set_memory_limit(0);
  EXPECT_GT(grown, 0);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(take_refusal().bytes, 77);
}

// A reader that found no slot while another one made it takes that one, also where it is there before lend().
TEST(SlotPool, WhoReservedWhileASlotWasMadeTakesThatOne) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer holds memory of its own";
  FakeData data;
  const auto source = open_large(data);
  const auto pool = std::make_shared<SlotPool>(source->fields(), 8, 1, 1);
  const int64_t slot = bytes_of_slot(*source);
  leave_room_for_one(slot);
  std::atomic<bool> is_growing = false, may_grow = false;
  set_ceiling_look([&] {
    is_growing = true;
    while (!may_grow) std::this_thread::yield();
    return int64_t{0};
  });
  ASSERT_TRUE(pool->begin_to_grow());
  std::thread grower([&] { pool->grow(); });
  while (!is_growing) std::this_thread::yield();
  EXPECT_EQ(pool->reserve(), nullptr) << "it is not there yet";
  may_grow = true;
  grower.join();
  set_ceiling_look({});
  EXPECT_FALSE(pool->has_free()) << "it is for the one who was first";
  std::shared_ptr<Slot> lent;
  EXPECT_NO_THROW(lent = pool->lend(nullptr)) << "there is room for one";
  set_memory_limit(0);
  lent.reset();
  EXPECT_TRUE(pool->has_free());
  EXPECT_EQ(pool->drop_free(0, std::numeric_limits<int64_t>::max()), slot) << "one was made, and one is counted";
}

int64_t bytes_of_one_slot(const std::shared_ptr<const Source>& source) {
  Loader loader(source, train(*source), {}, options(0));
  const auto batch = loader.next();
  return read_ledger().live(Owner::batches);
}

TEST(Loader, InTheMiddleOfAnEpochItKeepsOneSlot) {
  FakeData data;
  const auto source = open_fake(data);
  const int64_t slot = bytes_of_one_slot(source);
  for (const int workers : {0, 2}) {
    Loader loader(source, train(*source), {}, options(workers));
    loader.seek(0);
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

// Readers that want a slot at the same moment share the one there is room for.
TEST(Loader, ReadsOneBatchAtATimeWhereThereIsRoomForOneSlot) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer holds memory of its own";
  FakeData data;
  data.channels = 100'000;
  const auto source = open_fake(data);
  const int64_t slot = bytes_of_one_slot(source);
  for (int i = 0; i < 40; ++i) {
    Loader loader(source, train(*source), {}, options(4));
    const int64_t free = slot + slot / 2;
    set_memory_limit(held_bytes() + free + cushion_bytes(held_bytes() + free));
    loader.seek(0);
    for (int batch = 0; batch < 3; ++batch) ASSERT_NO_THROW(loader.next()) << "loader " << i << ", batch " << batch;
    set_memory_limit(0);
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

TEST(Loader, AConsumerThatHeldManyBatchesGivesTheirMemoryBack) {
  FakeData data;
  const auto source = open_fake(data);
  for (const int workers : {0, 1, 3}) {
    LoaderOptions plain = options(workers);
    plain.disk_ahead_bytes = 0;
    Loader loader(source, train(*source), {}, plain);
    std::vector<Batch> held;
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
    ASSERT_EQ(held.size(), 12u);
    const auto of_a_slot = static_cast<int64_t>(page_bytes);
    EXPECT_GE(read_ledger().live(Owner::batches), 12 * of_a_slot);
    held.clear();
    // As many as are ready or being read, and the one in use.
    EXPECT_LE(read_ledger().live(Owner::batches), (2 * workers + 1) * of_a_slot) << "with " << workers << " threads";
  }
}

}  // namespace
}  // namespace headroom
