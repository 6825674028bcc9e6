#include "train/chunks.hpp"

#include <cmath>
#include <gtest/gtest.h>

#include "../record/tensor_values.hpp"

namespace headroom {
namespace {

// The reference's loop, which finds the predictions of a step by looking for rows that are not zero.
TEST(Chunks, EnsembledAsTheReferenceDoes) {
  const SafetensorsFile golden(HEADROOM_SOURCE_DIR "/tests/golden/act_policy/f_temporal_ensemble.safetensors");
  const std::vector<float> asked = values<float>(golden, "in.chunks");
  const Chunks chunks{5, 14, {asked.begin(), asked.end()}};
  const std::vector<double> expected = values<double>(golden, "out.actions_f64"), ours = ensembled(chunks, 0.01);
  ASSERT_EQ(chunks.steps(), 12u);
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], expected[i], 4e-16 * (1.0 + std::abs(expected[i]))) << i;
}

// Two channels, three steps ahead; value = 100 channel + 10 asked + ahead.
Chunks counted(uint64_t steps) {
  Chunks chunks{3, 2, {}};
  for (uint64_t asked = 0; asked < steps; ++asked) {
    for (uint64_t ahead = 0; ahead < 3; ++ahead) {
      for (uint64_t channel = 0; channel < 2; ++channel)
        chunks.values.push_back(static_cast<double>(100 * channel + 10 * asked + ahead));
    }
  }
  return chunks;
}

TEST(Chunks, OpenLoopExecutesEveryAnswerToItsEnd) {
  EXPECT_EQ(open_loop(counted(5)), (std::vector<double>{0, 100, 1, 101, 2, 102, 30, 130, 31, 131}));
  EXPECT_EQ(open_loop(counted(2)), (std::vector<double>{0, 100, 1, 101}));
}

TEST(Chunks, TheOldestCountsMost) {
  const std::vector<double> together = ensembled(counted(3), std::log(2.0));
  // Step 2: made at 0, 1 and 2, which weigh 4, 2 and 1 of 7.
  EXPECT_NEAR(together[4], (4.0 * 2 + 2.0 * 11 + 1.0 * 20) / 7, 1e-14);
  EXPECT_NEAR(together[2], (2.0 * 1 + 1.0 * 10) / 3, 1e-14);
  EXPECT_EQ(together[0], 0.0);
}

// A prediction of nothing but zeros is a prediction.
TEST(Chunks, ZerosCount) {
  Chunks chunks{2, 1, {0.0, 0.0, 3.0, 3.0}};
  EXPECT_NEAR(ensembled(chunks, 0.0)[1], 1.5, 1e-15);
}

TEST(Chunks, HoldsWhatWasThereBeforeEachQuestion) {
  const std::vector<double> recorded = {0, 100, 1, 101, 2, 102, 3, 103, 4, 104};
  EXPECT_EQ(held_position(recorded, 2, 2), (std::vector<double>{0, 100, 0, 100, 1, 101, 1, 101, 3, 103}));
}

TEST(QuestionStarts, CoverTheRecordingAndEndWithIt) {
  using Starts = std::vector<uint64_t>;
  EXPECT_EQ(question_starts(10, 4, 0), (Starts{0, 4, 6}));
  EXPECT_EQ(question_starts(10, 4, 2), (Starts{0, 2, 4, 6}));
  EXPECT_EQ(question_starts(4, 4, 2), (Starts{0}));
  EXPECT_EQ(question_starts(3, 4, 2), (Starts{0}));
  EXPECT_EQ(question_starts(5, 2, 9), (Starts{0, 1, 2, 3})) << "an overlap of all but one step at most";
}

}  // namespace
}  // namespace headroom
