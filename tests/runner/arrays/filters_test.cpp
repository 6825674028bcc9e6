// Chunk filters alone, on bytes whose meaning is known.

#include "arrays/filters.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <libdeflate.h>
#include <random>
#include <string>

namespace headroom {
namespace {

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::string problem(auto&& decode) {
  try {
    decode();
  } catch (const DamagedChunk& damage) {
    return damage.what();
  }
  return "";
}

TEST(Filters, UnshuffleOfEveryElementSize) {
  std::mt19937 random(3);
  for (size_t width = 1; width <= 70; ++width) {
    for (const size_t elements : {1, 2, 15, 16, 17, 255, 300}) {
      const size_t rest = width > 1 ? random() % width : 0;
      std::vector<std::byte> plain(width * elements + rest), shuffled(plain.size()), back(plain.size());
      for (std::byte& byte : plain) byte = static_cast<std::byte>(random());
      shuffled = plain;
      for (size_t e = 0; elements > 1 && e < elements; ++e) {
        for (size_t b = 0; b < width; ++b) shuffled[b * elements + e] = plain[e * width + b];
      }
      unshuffle(shuffled, static_cast<uint32_t>(width), back.data());
      ASSERT_TRUE(back == plain) << width << " x " << elements;
    }
  }
}

TEST(Filters, Lzf) {
  std::vector<std::byte> to(10);
  inflate_lzf(bytes_of({1, 'a', 'b', 0xC0, 1}), to);  // two letters, then eight from two back
  EXPECT_EQ(std::memcmp(to.data(), "ababababab", 10), 0);
  const auto broken = "its LZF data are broken";
  EXPECT_EQ(problem([&] { inflate_lzf(bytes_of({1, 'a'}), to); }), broken);
  EXPECT_EQ(problem([&] { inflate_lzf(bytes_of({0, 'a', 0x20}), to); }), broken);
  EXPECT_EQ(problem([&] { inflate_lzf(bytes_of({0, 'a', 0xE0, 0}), to); }), broken);
  EXPECT_EQ(problem([&] { inflate_lzf(bytes_of({0, 'a', 0x20, 1}), to); }), broken) << "before the beginning";
  EXPECT_EQ(problem([&] { inflate_lzf(bytes_of({0, 'a', 0xE0, 9, 0}), to); }), broken) << "beyond the end";
  EXPECT_EQ(problem([&] { inflate_lzf(bytes_of({0, 'a'}), to); }), "its LZF data give another size");
}

TEST(Filters, Fletcher32AsPublished) {
  const std::string text = "abcde", longer = "abcdefgh";
  // HDF5 takes big-endian words, the published examples little-endian ones: the same bytes in pairs the other way.
  const std::string swapped = "badcfehg";
  EXPECT_EQ(fletcher32(std::as_bytes(std::span(swapped))), 0xEBE19591u) << "abcdefgh";
  EXPECT_EQ(fletcher32({}), 0u);
}

TEST(Filters, DamageIsToldApart) {
  const std::vector<ChunkFilter> filters = {{FilterKind::deflate, 0}, {FilterKind::fletcher32, 0}};
  std::vector<std::byte> chunk(1000), stored(1200), read(1000);
  for (size_t i = 0; i < chunk.size(); ++i) chunk[i] = static_cast<std::byte>(i / 10);
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  const size_t size = libdeflate_zlib_compress(compressor, chunk.data(), chunk.size(), stored.data(), stored.size());
  libdeflate_free_compressor(compressor);
  stored.resize(size);
  const uint32_t sum = fletcher32(stored);
  stored.resize(size + 4);
  std::memcpy(stored.data() + size, &sum, 4);
  decode_chunk(filters, 0, stored, read);
  EXPECT_TRUE(read == chunk);
  std::vector<std::byte> larger(1001);
  EXPECT_EQ(problem([&] { decode_chunk(filters, 0, stored, larger); }), "it inflates to another size");
  EXPECT_EQ(problem([&] { decode_chunk(filters, 3, stored, read); }),
            "it holds " + std::to_string(stored.size()) + " bytes instead of 1000");
  EXPECT_EQ(problem([&] { decode_chunk(filters, 0, std::span(stored).first(3), read); }),
            "it is shorter than its checksum");
  stored[size / 2] ^= std::byte{1};
  EXPECT_EQ(problem([&] { decode_chunk(filters, 0, stored, read); }), "its checksum is wrong");
  EXPECT_EQ(problem([&] { decode_chunk(filters, 2, std::span(stored).first(size), read); }), "it does not inflate");
}

}  // namespace
}  // namespace headroom
