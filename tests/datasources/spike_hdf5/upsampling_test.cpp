#include "spike_hdf5/upsampling.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace spike_hdf5 {
namespace {

std::vector<float> native_plane(const Size& size) {
  std::vector<float> plane;
  for (uint64_t i = 0; i < size.pixels(); ++i)
    plane.push_back(std::log1p(static_cast<float>((i * 2654435761u) >> 5 & 7)));
  return plane;
}

std::vector<float> part_of(const std::vector<float>& plane, const Size& size, const Box& box) {
  std::vector<float> part;
  for (uint64_t y = box.top; y < box.top + box.size.height; ++y) {
    for (uint64_t x = box.left; x < box.left + box.size.width; ++x) part.push_back(plane[y * size.width + x]);
  }
  return part;
}

std::vector<float> upsampled(const std::vector<float>& plane, const Size& native, const Size& full, const Box& part) {
  Upsampling upsampling(native, full, part);
  std::vector<float> result(part.size.pixels());
  upsampling.apply(part_of(plane, native, upsampling.source()).data(), result.data());
  return result;
}

// The definition, in float64: places (i + 1/2) native / full - 1/2, nothing beyond the borders.
double defined(const std::vector<float>& plane, const Size& native, const Size& full, uint64_t y, uint64_t x) {
  const auto value = [&](double down, double right) {
    const auto at = [](double place, uint64_t count) {
      return std::min(static_cast<uint64_t>(std::max(0.0, place)), count - 1);
    };
    return double{plane[at(down, native.height) * native.width + at(right, native.width)]};
  };
  const double down = std::max(0.0, (double(y) + 0.5) * double(native.height) / double(full.height) - 0.5);
  const double right = std::max(0.0, (double(x) + 0.5) * double(native.width) / double(full.width) - 0.5);
  const double top = std::floor(down), left = std::floor(right), v = down - top, u = right - left;
  return (1 - v) * ((1 - u) * value(top, left) + u * value(top, left + 1)) +
         v * ((1 - u) * value(top + 1, left) + u * value(top + 1, left + 1));
}

TEST(Upsampling, IsBilinearWithoutAlignedCorners) {
  for (const uint64_t factor : {1u, 2u, 3u, 4u}) {
    const Size native{6, 10}, full{6 * factor, 10 * factor};
    const auto plane = native_plane(native);
    const auto result = upsampled(plane, native, full, {0, 0, full});
    for (uint64_t y = 0; y < full.height; ++y) {
      for (uint64_t x = 0; x < full.width; ++x)
        ASSERT_NEAR(result[y * full.width + x], defined(plane, native, full, y, x), 2e-6)
            << factor << " " << y << " " << x;
    }
  }
}

// From one row or one column, and up to another factor along each axis.
TEST(Upsampling, OfThinPlanes) {
  const Size native{1, 3}, full{4, 6};
  const auto plane = native_plane(native), result = upsampled(plane, native, full, {0, 0, full});
  for (uint64_t i = 0; i < full.pixels(); ++i)
    ASSERT_NEAR(result[i], defined(plane, native, full, i / full.width, i % full.width), 1e-6);
}

TEST(Upsampling, OfAPartIsThePartOfTheWholeToTheBit) {
  const Size native{12, 9}, full{48, 27};
  const auto plane = native_plane(native), whole = upsampled(plane, native, full, {0, 0, full});
  for (uint64_t top = 0; top <= 40; top += 3) {
    for (uint64_t left = 0; left <= 18; ++left) {
      const Box part{top, left, {8, 9}};
      ASSERT_EQ(upsampled(plane, native, full, part), part_of(whole, full, part)) << top << " " << left;
    }
  }
}

TEST(Upsampling, OfOnePlaneAfterAnother) {
  const Size native{2, 4}, full{8, 8};  // whose rows are all kept
  Upsampling upsampling(native, full, {0, 0, full});
  std::vector<float> plane = native_plane(native), first(64), second(64);
  upsampling.apply(plane.data(), first.data());
  for (float& value : plane) value += 1.0f;
  upsampling.apply(plane.data(), second.data());
  for (std::size_t i = 0; i < 64; ++i) ASSERT_NEAR(second[i], first[i] + 1.0f, 1e-6);
}

TEST(Upsampling, NeedsOnlyTheNeighboursOfAPart) {
  const Box source = Upsampling({100, 200}, {400, 800}, {160, 320, {64, 64}}).source();
  EXPECT_EQ(source.top, 39u);
  EXPECT_EQ(source.left, 79u);
  EXPECT_EQ(source.size, (Size{18, 18}));
}

}  // namespace
}  // namespace spike_hdf5
