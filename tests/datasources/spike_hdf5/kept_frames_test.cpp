// Frames kept in the host's cache: the same clips, read once.
#include <set>

#include "data/cache_session.hpp"
#include "data/sample_cache.hpp"
#include "spike_source.hpp"

namespace headroom {
namespace {

class KeptFrames : public TemporaryFolder {
 protected:
  void TearDown() override {
    CacheSession::of_process()->blocks.set_limit(0);  // drops every block
    TemporaryFolder::TearDown();
  }

  static SampleCache::Statistics cached() { return CacheSession::of_process()->blocks.statistics(); }

  // Every clip of the source, twice, with other keys: other parts of the frames.
  static std::vector<Sample> all_clips(const Source& source) {
    std::vector<Sample> clips;
    for (uint64_t round = 0; round < 2; ++round) {
      for (uint64_t index = 0; index < source.length(0); ++index)
        clips.push_back(read_clip(source, index, 100 * round + index, /*augment=*/true));
    }
    return clips;
  }

  static constexpr const char* options = "clip_length = 3\ncrop_size = 8";
};

TEST_F(KeptFrames, TheSameClipsFromOneReadOfEachFrame) {
  for (const bool is_float : {true, false}) {
    for (const bool chunked : {true, false}) {
      write_sequence(folder_,
                     {.voxel = {8, 12}, .float_images = is_float, .float_counts = is_float, .chunked = chunked});
      const auto source = open_spikes(folder_, options);
      CacheSession::of_process()->blocks.set_limit(0);
      const std::vector<Sample> expected = all_clips(*source);
      EXPECT_GT(std::set(expected.begin(), expected.end()).size(), 3u) << "other parts of the frames";
      CacheSession::of_process()->blocks.set_limit(1 << 20);
      const auto before = cached();
      EXPECT_EQ(all_clips(*source), expected);
      const auto after = cached();
      EXPECT_EQ(after.items, 5u * 3u) << "frames, and the three that there are of each";
      EXPECT_EQ(after.misses - before.misses, 5u * 3u);
      EXPECT_GT(after.hits - before.hits, 2u * 3u * 3u * 2u) << "clips share frames";
    }
  }
}

TEST_F(KeptFrames, WhereThereIsNoRoomTheCropAloneIsRead) {
  write_sequence(folder_, {.float_images = false, .float_counts = false});
  const auto source = open_spikes(folder_, options);
  const std::vector<Sample> expected = all_clips(*source);
  CacheSession::of_process()->blocks.set_limit(3000);  // of 5 x 3 frames two
  const auto before = cached();
  EXPECT_EQ(all_clips(*source), expected);
  EXPECT_LE(cached().used_bytes, 3000u);
  EXPECT_GT(cached().misses - before.misses, 5u * 3u);
  CacheSession::of_process()->blocks.set_limit(1000);  // no frame
  EXPECT_EQ(all_clips(*source), expected);
  EXPECT_EQ(cached().items, 0u);
  EXPECT_GT(cached().refused, 0u);
}

TEST_F(KeptFrames, SamplesThatShareNothingAreLeftToTheHost) {
  write_sequence(folder_, {});
  CacheSession::of_process()->blocks.set_limit(1 << 20);
  const std::string fixed = "random_crop = false\nrandom_flip = false\nclip_length = 2\n";
  all_clips(*open_spikes(folder_, fixed + "clip_stride = 2"));
  EXPECT_EQ(cached().items, 0u);
  all_clips(*open_spikes(folder_, fixed + "clip_stride = 1"));
  EXPECT_EQ(cached().items, 5u * 3u);
}

TEST_F(KeptFrames, WhatIsNoCountIsStillToldWithItsPlace) {
  write_sequence(folder_, {.edit = [](const std::string& dataset, uint64_t frame, std::vector<float>& values) {
                   if (dataset == "voxel" && frame == 1) values[2 * 16 * 24 + 5 * 24 + 9] = -1.0f;
                 }});
  const auto source = open_spikes(folder_, "clip_length = 2");
  CacheSession::of_process()->blocks.set_limit(1 << 20);
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(sentence_of(folder_, Exit::data, [&] { read_clip(*source, 0); }),
                testing::HasSubstr("DIR/a.hdf5: voxel[1, 2, 5, 9] is no count, or no finite number"));
  }
}

}  // namespace
}  // namespace headroom
