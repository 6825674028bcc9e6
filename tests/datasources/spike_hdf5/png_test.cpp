// Damaged frames end in BadPng, never in a crash; under ASan this is the PNG path's fuzz test.
#include "spike_hdf5/png.hpp"

#include <gmock/gmock.h>

#include "png_writer.hpp"

namespace headroom {
namespace {

using spike_hdf5::Box;
using spike_hdf5::decode_png;
using spike_hdf5::Size;

std::vector<uint8_t> noise(std::size_t count) {
  std::vector<uint8_t> bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(i * i * 7 + i / 3 + 11));
  return bytes;
}

std::vector<uint8_t> decoded(std::span<const std::byte> file, const Size& size, const Box& box) {
  std::vector<uint8_t> planes(3 * box.size.pixels());
  decode_png(file, size, box, planes.data());
  return planes;
}

std::string problem_of(std::span<const std::byte> file, const Size& size) {
  try {
    decoded(file, size, {0, 0, size});
  } catch (const spike_hdf5::BadPng& problem) {
    return problem.what();
  }
  return "";
}

TEST(Png, AnyPartOfAFrame) {
  const Size size{21, 37};
  const auto pixels = noise(3 * size.pixels());
  const auto file = encode_png(pixels, size);
  EXPECT_EQ(spike_hdf5::png_size(file), size);
  for (const Box& box : {Box{0, 0, size}, Box{5, 3, {8, 32}}, Box{20, 36, {1, 1}}, Box{0, 20, {21, 17}}}) {
    const auto planes = decoded(file, size, box);
    for (uint64_t i = 0; i < box.size.pixels(); ++i) {
      const uint64_t at = (box.top + i / box.size.width) * size.width + box.left + i % box.size.width;
      for (uint64_t c = 0; c < 3; ++c) ASSERT_EQ(planes[c * box.size.pixels() + i], pixels[3 * at + c]);
    }
  }
}

TEST(Png, OtherKindsBecomeRedGreenAndBlue) {
  const Size size{2, 3};
  const Box all{0, 0, size};
  const std::vector<uint8_t> grey = {0, 10, 20, 30, 40, 255};
  std::vector<uint8_t> thrice;
  for (int c = 0; c < 3; ++c) thrice.insert(thrice.end(), grey.begin(), grey.end());
  EXPECT_EQ(decoded(encode_png(grey, size, {PNG_COLOR_TYPE_GRAY}), size, all), thrice);
  EXPECT_EQ(decoded(encode_png({0b10100000, 0b01000000}, size, {PNG_COLOR_TYPE_GRAY, 1}), {2, 3}, {0, 0, {2, 3}}),
            (std::vector<uint8_t>{255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0}));

  std::vector<uint8_t> with_alpha, wide;
  for (std::size_t i = 0; i < 18; ++i) {
    const uint8_t value = thrice[i % 3 * 6 + i / 3];
    with_alpha.push_back(value);
    if (i % 3 == 2) with_alpha.push_back(static_cast<uint8_t>(i));
    wide.insert(wide.end(), {value, value});
  }
  EXPECT_EQ(decoded(encode_png(with_alpha, size, {PNG_COLOR_TYPE_RGB_ALPHA}), size, all), thrice);
  EXPECT_EQ(decoded(encode_png(wide, size, {PNG_COLOR_TYPE_RGB, 16}), size, all), thrice);
  EXPECT_EQ(decoded(encode_png({0, 1, 2, 3, 0, 1}, size, {PNG_COLOR_TYPE_PALETTE}), size, all),
            (std::vector<uint8_t>{1, 40, 100, 250, 1, 40, 2, 50, 110, 251, 2, 50, 3, 60, 120, 252, 3, 60}));
}

TEST(Png, WhatIsNoFrameOfTheSequence) {
  const Size size{16, 16};
  const auto file = encode_png(noise(3 * size.pixels()), size);
  EXPECT_EQ(problem_of(file, {16, 24}), "is 16x16, the sequence's other frames are 16x24");
  EXPECT_EQ(problem_of(encode_png(noise(3 * size.pixels()), size, {PNG_COLOR_TYPE_RGB, 8, true}), size),
            "is interlaced; write it again without");
  EXPECT_EQ(problem_of(std::span(file).first(file.size() / 2), size), "is no whole PNG (it ends early)");
  EXPECT_THAT(problem_of({}, size), testing::HasSubstr("is no whole PNG"));
  EXPECT_THAT(problem_of(std::vector<std::byte>(100), size), testing::HasSubstr("is no whole PNG (Not a PNG file"));
}

TEST(Png, DamageNeverCrashes) {
  const Size size{16, 16};
  const auto file = encode_png(noise(3 * size.pixels()), size);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const auto flip : {std::byte{1}, std::byte{0xFF}}) {
      auto damaged = file;
      damaged[at] ^= flip;
      problem_of(damaged, size);
    }
    problem_of(std::span(file).first(at), size);
  }
}

}  // namespace
}  // namespace headroom
