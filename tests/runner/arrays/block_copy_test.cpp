#include "arrays/block_copy.hpp"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "arrays/convert.hpp"

namespace headroom {
namespace {

constexpr std::byte untouched{0xEE};

class BlockCopy : public testing::TestWithParam<bool> {};

// `bytes` from an odd place to one that is `shift` bytes away from a register's, with a margin on both sides.
struct Trial {
  Trial(uint64_t size, size_t shift) : bytes(size), from_(size + 64), to_(size + 256, untouched) {
    std::mt19937 random(static_cast<unsigned>(size + shift));
    for (std::byte& byte : from_) byte = static_cast<std::byte>(random());
    from = from_.data() + 13;
    const size_t gap = 64 - reinterpret_cast<uintptr_t>(to_.data()) % 64;
    to = to_.data() + gap + 64 + shift;
  }
  template <class Real>
  void fill(Real value) {
    for (uint64_t at = 0; at < bytes; at += sizeof value) std::memcpy(from + at, &value, sizeof value);
  }
  template <class Real>
  void put(uint64_t index, Real value) {
    std::memcpy(from + index * sizeof value, &value, sizeof value);
  }
  void expect_copied() const {
    EXPECT_EQ(std::memcmp(to, from, bytes), 0);
    EXPECT_EQ(to[-1], untouched);
    EXPECT_EQ(to[bytes], untouched);
  }

  uint64_t bytes;
  std::byte *from, *to;

 private:
  std::vector<std::byte> from_, to_;
};

TEST_P(BlockCopy, CopiesEveryByteAndNoOther) {
  for (const uint64_t bytes : {0, 1, 31, 32, 127, 128, 129, 4095, 4096, 4097, 9000, 70001}) {
    for (const size_t shift : {0, 1, 4, 8, 31}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, " << shift << " from a register's place");
      Trial trial(bytes, shift);
      EXPECT_TRUE(copy_block(trial.to, trial.from, bytes, FiniteCheck::none, GetParam()));
      trial.expect_copied();
    }
  }
}

template <class Real>
void finds_every_bad_value(FiniteCheck check, bool past_caches) {
  using Limits = std::numeric_limits<Real>;
  for (const uint64_t count : {1, 3, 8, 31, 32, 33, 100, 1024, 1100, 3000}) {
    for (const size_t shift : {size_t{0}, sizeof(Real), size_t{3}, 32 - sizeof(Real)}) {
      SCOPED_TRACE(testing::Message() << count << " values, " << shift << " from a register's place");
      Trial trial(count * sizeof(Real), shift);
      for (const Real finite : {Limits::max(), Limits::lowest(), Limits::denorm_min(), Real{-0.0}, Real{1}}) {
        trial.fill(finite);
        EXPECT_TRUE(copy_block(trial.to, trial.from, trial.bytes, check, past_caches)) << finite;
        EXPECT_TRUE(all_finite(trial.from, trial.bytes, check)) << finite;
        trial.expect_copied();
      }
      for (uint64_t at = 0; at < count; at += count < 200 ? 1 : 37) {
        for (const Real bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
          trial.put(at, bad);
          EXPECT_FALSE(copy_block(trial.to, trial.from, trial.bytes, check, past_caches)) << bad << " at " << at;
          EXPECT_FALSE(all_finite(trial.from, trial.bytes, check)) << bad << " at " << at;
          trial.expect_copied();
        }
        trial.put(at, Real{1});
      }
    }
  }
}

TEST_P(BlockCopy, TellsOfEveryValueThatIsNotFinite) {
  finds_every_bad_value<float>(FiniteCheck::float32, GetParam());
  finds_every_bad_value<double>(FiniteCheck::float64, GetParam());
}

// Rows with gaps between them, as members of records are: of every length around those with a copy of their own.
TEST(BlockCopyOfRows, CopiesAndChecksRowsOfEveryLength) {
  constexpr uint64_t rows = 5, gap = 12;
  for (uint64_t bytes = 4; bytes <= 288; bytes += 4) {
    SCOPED_TRACE(testing::Message() << "rows of " << bytes << " bytes");
    const uint64_t stride = bytes + gap, values = bytes / sizeof(float);
    std::vector<std::byte> from(rows * stride), to(rows * bytes + 1, untouched);
    const auto value_at = [&](uint64_t row, uint64_t value) {
      return from.data() + row * stride + value * sizeof(float);
    };
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t value = 0; value < values; ++value) {
        const auto number = static_cast<float>(1000 * row + value);
        std::memcpy(value_at(row, value), &number, sizeof number);
      }
    }
    Conversion conversion{.from_dtype = {kDLFloat, 32, 1},
                          .to_dtype = {kDLFloat, 32, 1},
                          .values = values,
                          .from = from.data(),
                          .to = to.data(),
                          .from_stride = stride,
                          .to_stride = bytes,
                          .elements = rows,
                          .check = FiniteCheck::float32};
    EXPECT_TRUE(convert(conversion));
    for (uint64_t row = 0; row < rows; ++row)
      EXPECT_EQ(std::memcmp(to.data() + row * bytes, value_at(row, 0), bytes), 0) << "row " << row;
    EXPECT_EQ(to.back(), untouched);

    const float infinite = std::numeric_limits<float>::infinity();
    std::memcpy(value_at(rows - 1, values - 1), &infinite, sizeof infinite);
    EXPECT_FALSE(convert(conversion));
    conversion.check = FiniteCheck::none;
    EXPECT_TRUE(convert(conversion));
  }
}

INSTANTIATE_TEST_SUITE_P(PastCaches, BlockCopy, testing::Bool());

}  // namespace
}  // namespace headroom
