// How often the sample cache hits, under each policy and in each order.
#include <algorithm>
#include <string>
#include <vector>

#include "cached_blocks.hpp"
#include "data/data_report.hpp"
#include "data/order.hpp"

namespace headroom {
namespace {

// The survey's table: 2,222 frames, room for 374, six epochs, cold start included (anchors/data_loading.md 3).
class SurveyTable : public testing::Test {
 protected:
  static constexpr uint64_t frames = 2222, room = 374, epochs = 6, clip = 6, sequence = 100;

  // Visits `frame`; frames are alike, so that the limit is `room` of them.
  static void visit(SampleCache& cache, uint64_t frame, CachePolicy policy) {
    std::string key = std::to_string(frame);
    key.insert(0, 8 - key.size(), '0');
    if (!has(cache, key)) put(cache, key, 64, policy);
  }

  template <class Visit>
  static double hit_rate(CachePolicy policy, Visit visits) {
    SampleCache cache;
    cache.set_limit(room * (64 + sizeof(Block) + 8));
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      visits(epoch, [&](uint64_t frame) { visit(cache, frame, policy); });
    }
    EXPECT_LE(cache.statistics().items, room);
    RecordProperty(policy == CachePolicy::lru ? "lru" : "planned",
                   std::to_string(100.0 * cache.statistics().hit_rate()));
    return 100.0 * cache.statistics().hit_rate();
  }

  static void frame_by_frame(Shuffle shuffle, uint64_t epoch, const auto& visit) {
    const Order order(shuffle, frames, 7, epoch);
    for (uint64_t i = 0; i < frames; ++i) visit(order.at(i));
  }

  // Every clip of six neighbours within a sequence, in the order given.
  static void clips(Shuffle shuffle, uint64_t epoch, const auto& visit) {
    std::vector<uint64_t> starts;
    for (uint64_t first = 0; first < frames; first += sequence) {
      const uint64_t end = std::min(first + sequence, frames);
      for (uint64_t start = first; start + clip <= end; ++start) starts.push_back(start);
    }
    const Order order(shuffle, starts.size(), 7, epoch);
    for (uint64_t i = 0; i < starts.size(); ++i) {
      for (uint64_t frame = 0; frame < clip; ++frame) visit(starts[order.at(i)] + frame);
    }
  }
};

TEST_F(SurveyTable, RandomFrames) {
  const auto visits = [](uint64_t epoch, const auto& visit) { frame_by_frame(Shuffle::global, epoch, visit); };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 1.05, 1.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 14.0);
}

TEST_F(SurveyTable, SequentialEpochs) {
  const auto visits = [](uint64_t epoch, const auto& visit) { frame_by_frame(Shuffle::sequential, epoch, visit); };
  EXPECT_EQ(hit_rate(CachePolicy::lru, visits), 0.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 14.0);
}

TEST_F(SurveyTable, RandomClips) {
  const auto visits = [](uint64_t epoch, const auto& visit) { clips(Shuffle::global, epoch, visit); };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 14.8, 1.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 16.5);
}

TEST_F(SurveyTable, ClipsInTheOrderOfSequences) {
  const auto visits = [](uint64_t epoch, const auto& visit) { clips(Shuffle::sequential, epoch, visit); };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 82.7, 1.0);
  EXPECT_GE(hit_rate(CachePolicy::planned, visits), 16.4);
}

// Three sequences after the other three, in an order of their own each epoch; the clips of the three shuffled together.
TEST_F(SurveyTable, ClipsShuffledInsideGroupsOfThreeSequences) {
  const auto visits = [](uint64_t epoch, const auto& visit) {
    constexpr uint64_t sequences = (frames + sequence - 1) / sequence;
    const Order order(Shuffle::global, sequences, 7, epoch);
    for (uint64_t first = 0; first < sequences; first += 3) {
      std::vector<uint64_t> starts;
      for (uint64_t i = first; i < std::min(first + 3, sequences); ++i) {
        const uint64_t begin = order.at(i) * sequence, end = std::min(begin + sequence, frames);
        for (uint64_t start = begin; start + clip <= end; ++start) starts.push_back(start);
      }
      const Order inside(Shuffle::global, starts.size(), 7, epoch * sequences + first);
      for (uint64_t i = 0; i < starts.size(); ++i) {
        for (uint64_t frame = 0; frame < clip; ++frame) visit(starts[inside.at(i)] + frame);
      }
    }
  };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 82.8, 1.0);
  EXPECT_NEAR(hit_rate(CachePolicy::planned, visits), 16.5, 0.5);  // by which frames happen to come first
}

// The same by `data.grouped = { runs = 3 }`: runs as long as a sequence has clips.
TEST_F(SurveyTable, ClipsInTheGroupedOrder) {
  const auto visits = [](uint64_t epoch, const auto& visit) {
    constexpr uint64_t sequences = frames / sequence, clips_of_one = sequence - clip + 1;
    const Order order(Shuffle::grouped, sequences * clips_of_one, 7, epoch, {3, clips_of_one});
    for (uint64_t i = 0; i < sequences * clips_of_one; ++i) {
      const uint64_t at = order.at(i), start = at / clips_of_one * sequence + at % clips_of_one;
      for (uint64_t frame = 0; frame < clip; ++frame) visit(start + frame);
    }
  };
  EXPECT_NEAR(hit_rate(CachePolicy::lru, visits), 82.8, 1.0);
}

TEST(ExpectedHitRate, IsWhatTheTableMeasures) {
  constexpr double kept = 374.0 / 2222.0;
  EXPECT_NEAR(expected_hit_rate(CachePolicy::lru, true, kept), 0.015, 0.001);
  EXPECT_EQ(expected_hit_rate(CachePolicy::lru, false, kept), 0.0);
  EXPECT_EQ(expected_hit_rate(CachePolicy::planned, true, kept), kept);
  EXPECT_EQ(expected_hit_rate(CachePolicy::lru, true, 1.5), 1.0);
}

}  // namespace
}  // namespace headroom
