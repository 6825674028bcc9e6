// Keyed randomness, the words: known answers, so that a run repeats on any machine and in any release.
#include <gtest/gtest.h>
#include <set>

#include "headroom/sdk/draws.hpp"
#include "process_host.hpp"

namespace headroom {
namespace {

using namespace sdk::literals;

struct Block {
  uint32_t words[4];
};

Block philox(uint64_t key, uint64_t site, uint64_t block) {
  Block result;
  hr_philox(key, site, block, result.words);
  return result;
}

void expect_words(const Block& block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(block.words[0], a);
  EXPECT_EQ(block.words[1], b);
  EXPECT_EQ(block.words[2], c);
  EXPECT_EQ(block.words[3], d);
}

// The known-answer vectors of Random123 for philox4x32-10.
TEST(KeyedWords, KnownAnswers) {
  expect_words(philox(0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  expect_words(philox(~0ull, ~0ull, ~0ull), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  expect_words(philox(0x299f31d0'a4093822, 0x03707344'13198a2e, 0x85a308d3'243f6a88), 0xd16cfe09, 0x94fdcceb,
               0x5001e420, 0x24126ea1);
}

// Fixed for ever: old runs resume with them.
TEST(KeyedWords, GoldenKeysAndSites) {
  EXPECT_EQ(sdk::site(""), 0xcbf29ce484222325u);
  EXPECT_EQ("a"_site, 0xaf63dc4c8601ec8cu);
  EXPECT_NE("encoder.0"_site, "encoder.1"_site);
  EXPECT_NE(sdk::site("layer"_site, 0), sdk::site("layer"_site, 1));
  EXPECT_EQ(hr_sample_key(1, 2, 3, 4), 0x6a0949ac9c734846u);
  EXPECT_EQ(hr_uniform_below(7, "crop"_site, 1000), 196u);
  EXPECT_EQ(sdk::below(7, "crop"_site, 1000), hr_uniform_below(7, "crop"_site, 1000));
}

TEST(KeyedWords, KeysDiffer) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (uint32_t split = 0; split < 3; ++split) {
      for (uint64_t epoch = 0; epoch < 4; ++epoch) {
        for (uint64_t index = 0; index < 32; ++index) keys.insert(hr_sample_key(seed, split, epoch, index));
      }
    }
  }
  EXPECT_EQ(keys.size(), 4u * 3 * 4 * 32);
}

TEST(KeyedWords, DrawsLookAsTheyShould) {
  double sum = 0, normal_sum = 0, normal_squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = sdk::uniform(9, "u"_site, static_cast<uint64_t>(i)),
                 n = sdk::normal(9, "n"_site, static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_LT(sdk::below(9, "b"_site, 10, static_cast<uint64_t>(i)), 10u);
    sum += u;
    normal_sum += n;
    normal_squares += n * n;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  EXPECT_NEAR(normal_sum / kDraws, 0.0, 0.03);
  EXPECT_NEAR(normal_squares / kDraws, 1.0, 0.04);
}

TEST(KeyedWords, TheServiceGivesTheSame) {
  const auto* rng = static_cast<const hr_rng*>(host()->get_service(host(), HR_RNG));
  ASSERT_NE(rng, nullptr);
  uint32_t words[8];
  rng->fill(5, 6, 7, words, 2);
  for (int block = 0; block < 2; ++block) {
    const Block expected = philox(5, 6, 7 + static_cast<uint64_t>(block));
    for (int word = 0; word < 4; ++word) EXPECT_EQ(words[4 * block + word], expected.words[word]);
  }
  EXPECT_EQ(rng->sample_key(1, 2, 3, 4), hr_sample_key(1, 2, 3, 4));
}

}  // namespace
}  // namespace headroom
