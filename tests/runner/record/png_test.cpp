#include "record/png.hpp"

#include <gtest/gtest.h>
#include <vector>
#include <zlib.h>

namespace headroom {
namespace {

std::string bytes_of(const std::string& base64) {
  std::string bytes;
  uint32_t group = 0;
  int digits = 0;
  for (const char c : base64) {
    const size_t digit = std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    EXPECT_TRUE(c == '=' || digit != std::string::npos) << c;
    group = group << 6 | (c == '=' ? 0 : static_cast<uint32_t>(digit));
    if (++digits % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 0xff);
    group = 0;
  }
  const size_t padding = base64.size() - (base64.find_last_not_of('=') + 1);
  return bytes.substr(0, bytes.size() - padding);
}

uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes.at(i));
  return number;
}

struct Decoded {
  uint32_t width = 0, height = 0;
  int colour_type = 0;
  std::string rows;
};

// Of what png_data_uri() writes; every chunk's checksum is looked at.
Decoded decoded(const std::string& uri) {
  const std::string prefix = "data:image/png;base64,";
  EXPECT_EQ(uri.find(prefix), 0u);
  const std::string png = bytes_of(uri.substr(prefix.size()));
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  Decoded image;
  std::string kinds;
  for (size_t at = 8; at < png.size();) {
    const uint32_t size = number_at(png, at);
    const std::string kind = png.substr(at + 4, 4), content = png.substr(at + 8, size);
    EXPECT_EQ(number_at(png, at + 8 + size),
              crc32(0, reinterpret_cast<const Bytef*>(png.data()) + at + 4, static_cast<uInt>(size + 4)));
    kinds += kind + " ";
    if (kind == "IHDR")
      image.width = number_at(content, 0), image.height = number_at(content, 4), image.colour_type = content.at(9);
    if (kind == "IDAT") {
      image.rows.resize(1 << 16);
      uLongf length = image.rows.size();
      EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(image.rows.data()), &length,
                           reinterpret_cast<const Bytef*>(content.data()), content.size()),
                Z_OK);
      image.rows.resize(length);
    }
    at += 12 + size;
  }
  EXPECT_EQ(kinds, "IHDR IDAT IEND ");
  return image;
}

TEST(Png, GreyAndColoursComeBack) {
  const std::vector<uint8_t> grey = {0, 1, 2, 253, 254, 255};
  const Decoded image = decoded(png_data_uri(grey, 3, 2, 1));
  EXPECT_EQ(image.width, 3u);
  EXPECT_EQ(image.height, 2u);
  EXPECT_EQ(image.colour_type, 0);
  EXPECT_EQ(image.rows, std::string("\0\0\1\2\0\xfd\xfe\xff", 8));
  const Decoded colours = decoded(png_data_uri(grey, 1, 2, 3));
  EXPECT_EQ(colours.colour_type, 2);
  EXPECT_EQ(colours.rows, std::string("\0\0\1\2\0\xfd\xfe\xff", 8));
}

TEST(Png, EveryLengthIsPadded) {
  for (uint32_t width = 1; width < 8; ++width)
    EXPECT_EQ(decoded(png_data_uri(std::vector<uint8_t>(width, 7), width, 1, 1)).rows.size(), width + 1);
}

}  // namespace
}  // namespace headroom
