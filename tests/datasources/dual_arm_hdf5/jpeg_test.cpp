// Damaged frames end in BadJpeg, never in a crash; under ASan this is the JPEG path's fuzz test.
#include "dual_arm_hdf5/jpeg.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "jpeg_writer.hpp"

namespace dual_arm_hdf5 {
namespace {

constexpr uint64_t kHeight = 40, kWidth = 56;

std::vector<uint8_t> picture() {
  std::vector<uint8_t> pixels(kHeight * kWidth * 3);
  for (uint64_t y = 0; y < kHeight; ++y) {
    for (uint64_t x = 0; x < kWidth; ++x) {
      uint8_t* pixel = &pixels[3 * (y * kWidth + x)];
      pixel[0] = static_cast<uint8_t>(200 - 3 * y);
      pixel[1] = static_cast<uint8_t>(4 * x);
      pixel[2] = (x / 8 + y / 8) % 2 == 0 ? 30 : 90;
    }
  }
  return pixels;
}

std::vector<uint8_t> frame(bool progressive = false) {
  return headroom::encode_as_opencv(picture(), kHeight, kWidth, 95, progressive);
}

std::vector<uint8_t> decode(JpegDecoder& decoder, const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> planes(3 * kHeight * kWidth);
  decoder.decode(bytes, {kHeight, kWidth}, planes);
  return planes;
}

TEST(Jpeg, ChannelsComeBackAsTheyWent) {
  JpegDecoder decoder;
  for (const bool progressive : {false, true}) {
    std::vector<uint8_t> bytes = frame(progressive);
    bytes.resize(bytes.size() + 500);  // as the writers pad
    EXPECT_EQ(decoder.size(bytes), (FrameSize{kHeight, kWidth}));
    const std::vector<uint8_t> planes = decode(decoder, bytes), pixels = picture();
    double error = 0.0;
    for (std::size_t i = 0; i < planes.size(); ++i)
      error += std::abs(int{planes[i % 3 * kHeight * kWidth + i / 3]} - int{pixels[i]});
    EXPECT_LT(error / static_cast<double>(planes.size()), 4.0);
  }
}

// Cut anywhere, with and without the padding: told, and the decoder still works.
TEST(Jpeg, EveryTruncationIsTold) {
  const std::vector<uint8_t> whole = frame();
  JpegDecoder decoder;
  const std::vector<uint8_t> expected = decode(decoder, whole);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(decode(decoder, cut), BadJpeg) << length;
    cut.resize(whole.size() + 100);
    EXPECT_THROW(decode(decoder, cut), BadJpeg) << length << " padded";
  }
  EXPECT_EQ(decode(decoder, whole), expected);
}

TEST(Jpeg, OfAnotherSizeIsTold) {
  JpegDecoder decoder;
  std::vector<uint8_t> planes(3 * 20 * 30);
  try {
    decoder.decode(frame(), {20, 30}, planes);
    FAIL();
  } catch (const BadJpeg& problem) {
    EXPECT_STREQ(problem.what(), "is 40x56, other frames are 20x30");
  }
}

// A few bytes changed, cut out or doubled: decoded or refused.
TEST(Jpeg, MutatedFramesNeverCrash) {
  JpegDecoder decoder;
  uint64_t state = 1, refused = 0, decoded = 0;
  const auto draw = [&](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  for (int round = 0; round < 6000; ++round) {
    std::vector<uint8_t> bytes = frame(round % 3 == 0);
    for (uint64_t change = draw(4) + 1; change > 0; --change) {
      // Two of three in the headers, where sizes, tables and scans are told.
      const auto at =
          static_cast<std::ptrdiff_t>(draw(draw(3) == 0 ? bytes.size() : std::min<uint64_t>(700, bytes.size())));
      switch (draw(4)) {
        case 0:
          bytes[static_cast<std::size_t>(at)] = static_cast<uint8_t>(draw(256));
          break;
        case 1:
          bytes[static_cast<std::size_t>(at)] ^= static_cast<uint8_t>(1u << draw(8));
          break;
        case 2:
          bytes.erase(bytes.begin() + at, std::min(bytes.end(), bytes.begin() + at + 3));
          break;
        default:
          bytes.insert(bytes.begin() + at, 2, static_cast<uint8_t>(draw(2) * 255));
          break;
      }
      if (bytes.empty()) bytes = frame();
    }
    try {
      decode(decoder, bytes);
      ++decoded;
    } catch (const BadJpeg&) {
      ++refused;
    }
  }
  EXPECT_GT(decoded, 100u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace dual_arm_hdf5
