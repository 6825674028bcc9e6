// Large reads in parts: what threads share is what one reads, and readers with nothing to fill take parts of another's.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "../arrays/h5_files.hpp"
#include "arrays/box.hpp"
#include "arrays/read_hooks.hpp"
#include "data/offered_parts.hpp"
#include "loader_trial.hpp"

namespace headroom {
namespace {

// Parts from the last to the first, on two threads.
class Backwards : public WorkSharer {
 public:
  void run(size_t parts, const Part& part) override {
    most_parts = std::max(most_parts, parts);
    std::exception_ptr error;
    const auto every_other = [&](size_t last) {
      for (size_t i = last; i < parts; i -= 2) {
        try {
          part(i);
        } catch (...) {
          error = std::current_exception();  // of one thread at most, in these tests
        }
      }
    };
    std::thread other([&] { every_other(parts - 2); });
    every_other(parts - 1);
    other.join();
    if (error != nullptr) std::rethrow_exception(error);
  }
  size_t most_parts = 0;
};

constexpr uint64_t planes = 6, rows = 256, columns = 1024;

class SharedRead : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
    std::iota(values_.begin(), values_.end(), 0.0);
  }
  void write(const std::vector<hsize_t>& chunk, int deflate) {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", H5T_NATIVE_DOUBLE, {planes, rows, columns}, values_, chunk, deflate);
  }
  struct Read {
    hr_status status = HR_INTERNAL;
    int32_t finite = -1;
    std::vector<double> values;
  };
  static Read read(const OpenArray& array, const std::vector<uint64_t>& start, const std::vector<uint64_t>& count) {
    Read read;
    read.values.resize(product(count));
    const hr_array_target target{HR_WHOLE, {kDLFloat, 64, 1}, read.values.data(), 0};
    read.status = arrays_service().read_box_check_finite(array.get(), start.data(), count.data(), &target, 1,
                                                         &read.finite, nullptr);
    return read;
  }
  void expect_the_same(size_t least_parts) {
    const OpenArray array(path_, "x");
    ASSERT_EQ(array.status(), HR_OK) << array.message();
    for (const auto& [start, count] :
         {std::pair<std::vector<uint64_t>, std::vector<uint64_t>>{{0, 0, 0}, {planes, rows, columns}},
          {{1, 3, 5}, {planes - 1, rows - 4, columns - 9}},
          {{0, 0, 100}, {planes, rows, columns - 200}}}) {
      const Read alone = read(array, start, count);
      Backwards sharer;
      const ShareWork sharing(sharer);
      const Read shared = read(array, start, count);
      EXPECT_GE(sharer.most_parts, least_parts);
      ASSERT_EQ(shared.status, HR_OK);
      EXPECT_TRUE(shared.values == alone.values);
      EXPECT_EQ(shared.finite, alone.finite);
      EXPECT_EQ(shared.values.front(), static_cast<double>((start[0] * rows + start[1]) * columns + start[2]));
    }
  }

  std::string path_;
  std::vector<double> values_ = std::vector<double>(planes * rows * columns);
};

TEST_F(SharedRead, OfEveryLayoutIsWhatOneThreadReads) {
  for (const auto& [chunk, deflate] :
       {std::pair<std::vector<hsize_t>, int>{{}, 0}, {{1, 64, 1024}, 0}, {{2, 100, 300}, 1}}) {
    write(chunk, deflate);
    expect_the_same(3);
  }
}

TEST_F(SharedRead, ANaNInAnyPartIsTold) {
  values_[values_.size() / 2] = std::numeric_limits<double>::quiet_NaN();
  for (const int deflate : {0, 1}) {
    write(deflate > 0 ? std::vector<hsize_t>{1, 64, 1024} : std::vector<hsize_t>{}, deflate);
    const OpenArray array(path_, "x");
    Backwards sharer;
    const ShareWork sharing(sharer);
    EXPECT_EQ(read(array, {0, 0, 0}, {planes, rows, columns}).finite, 0);
    EXPECT_EQ(read(array, {0, 0, 0}, {planes / 2, rows, columns}).finite, 1);
    EXPECT_GT(sharer.most_parts, 1u);
  }
}

TEST_F(SharedRead, SmallOnesAreNot) {
  write({}, 0);
  const OpenArray array(path_, "x");
  Backwards sharer;
  const ShareWork sharing(sharer);
  EXPECT_EQ(read(array, {0, 0, 0}, {1, rows, columns}).status, HR_OK);
  EXPECT_EQ(sharer.most_parts, 0u);
}

// Waits until `wanted` threads are in it at a time; for two seconds, once.
class Meeting {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}
  void attend() {
    const int here = ++here_;
    for (int most = most_; here > most && !most_.compare_exchange_weak(most, here);) {
    }
    for (int i = 0; i < 2000 && most_ < wanted_ && !given_up_; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    given_up_ = most_ < wanted_;
    --here_;
  }
  int most() const { return most_; }

 private:
  int wanted_;
  std::atomic<int> here_{0}, most_{0};
  std::atomic<bool> given_up_{false};
};

// One batch ahead: the others have nothing to fill.
LoaderOptions one_ahead(int workers) {
  LoaderOptions all = options(workers);
  all.prefetch_bytes = 1;
  return all;
}

TEST(LoaderSharing, ReadersWithNothingToFillTakeParts) {
  FakeData data;
  const auto source = open_fake(data);
  std::vector<std::string> expected;
  {
    Loader alone(source, train(*source), {}, one_ahead(0));
    expected = epoch_of(alone);
  }
  Meeting meeting(3);
  std::array<std::atomic<int>, 6> taken{};
  data.during_read = [&] {
    in_parts(taken.size(), [&](size_t part) {
      ++taken[part];
      meeting.attend();
    });
  };
  Loader loader(source, train(*source), {}, one_ahead(3));
  EXPECT_TRUE(epoch_of(loader) == expected);
  EXPECT_EQ(meeting.most(), 3);
  for (const auto& times : taken) EXPECT_EQ(times, static_cast<int>(expected.size()));
}

TEST(LoaderSharing, PausesOfThoseThatHelpAreNoDeadlock) {
  FakeData data;
  const auto source = open_fake(data);
  std::atomic<int> ended{0};
  data.during_read = [&] {
    in_parts(8, [&](size_t) {
      const Pause pause(PauseFor::disk);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++ended;
    });
  };
  for (const int workers : {1, 2, 4}) {
    for (const bool wide : {false, true}) {
      ended = 0;
      Loader loader(source, train(*source), {}, wide ? options(workers) : one_ahead(workers));
      EXPECT_EQ(epoch_of(loader).size(), 12u);
      EXPECT_EQ(ended, 12 * 8);
    }
  }
}

TEST(OfferedParts, WhatOneThrowsIsThrownWhenAllHaveEnded) {
  OfferedParts offered([] {});
  std::atomic<bool> stop{false};
  std::thread helper([&] {
    while (!stop) offered.help();
  });
  std::atomic<int> running{0};
  for (int round = 0; round < 200; ++round) {
    const Part fifth_throws = [&](size_t part) {
      ++running;
      if (part == 5) {
        --running;
        throw std::runtime_error("the fifth");
      }
      std::this_thread::yield();
      --running;
    };
    EXPECT_THROW(offered.run(20, fifth_throws), std::runtime_error);
    EXPECT_EQ(running, 0);
    EXPECT_FALSE(offered.help());
  }
  stop = true;
  helper.join();
}

}  // namespace
}  // namespace headroom
