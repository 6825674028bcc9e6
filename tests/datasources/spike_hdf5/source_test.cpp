#include <cmath>
#include <set>
#include <thread>

#include "spike_source.hpp"

namespace headroom {
namespace {

class Spikes : public TemporaryFolder {
 protected:
  static std::vector<int64_t> shape(const Source& source, std::size_t field) { return source.fields()[field].shape; }

  // planes[frames, 3, height, width] as they were written, in [0, 255].
  static std::vector<double> images(const SequenceSpec& spec, bool sharp, uint64_t first, uint64_t frames) {
    std::vector<double> planes;
    for (uint64_t t = first; t < first + frames; ++t) {
      for (uint64_t c = 0; c < 3; ++c) {
        for (uint64_t y = 0; y < spec.height; ++y) {
          for (uint64_t x = 0; x < spec.width; ++x) planes.push_back(level_of(sharp, t, y, x, c));
        }
      }
    }
    return planes;
  }
  static std::vector<float> voxels(const SequenceSpec& spec, uint64_t first, uint64_t frames) {
    std::vector<float> planes;
    const Size size = spec.voxel_size();
    for (uint64_t t = first; t < first + frames; ++t) {
      for (uint64_t k = 0; k < spec.bins; ++k) {
        for (uint64_t i = 0; i < size.pixels(); ++i)
          planes.push_back(std::log1p(static_cast<float>(count_of(t, k, i / size.width, i % size.width))));
      }
    }
    return planes;
  }
  // A field of frames in [0, 255], whatever it is stored as.
  static std::vector<double> levels(const Source& source, const Sample& sample, const std::string& field) {
    std::vector<double> result;
    if (sdk::same_type(source.fields()[0].dtype, sdk::u8)) {
      for (const uint8_t value : values<uint8_t>(sample, field)) result.push_back(value);
    } else {
      for (const float value : values<float>(sample, field)) result.push_back(std::round(double{value} * 255.0));
    }
    return result;
  }
};

TEST_F(Spikes, FieldsTellShapesAndTypes) {
  write_sequence(folder_, {.bins = 4});
  const auto source = open_spikes(folder_, "clip_length = 3");
  ASSERT_EQ(source->fields().size(), 3u);
  EXPECT_EQ(source->fields()[0].name, "blur");
  EXPECT_EQ(source->fields()[1].name, "sharp");
  EXPECT_EQ(source->fields()[2].name, "voxel");
  EXPECT_EQ(shape(*source, 0), (std::vector<int64_t>{3, 3, 16, 24}));
  EXPECT_EQ(shape(*source, 1), (std::vector<int64_t>{3, 3, 16, 24}));
  EXPECT_EQ(shape(*source, 2), (std::vector<int64_t>{3, 4, 16, 24}));
  EXPECT_TRUE(sdk::same_type(source->fields()[0].dtype, sdk::f32));
  EXPECT_EQ(source->fields()[2].axes, (std::vector<std::string>{"time", "channel", "height", "width"}));
  EXPECT_EQ(open_spikes(folder_, "clip_length = 3\nuse_voxel = false")->fields().size(), 2u);
  write_sequence(folder_, {.float_images = false, .float_counts = false});
  const auto compact = open_spikes(folder_, "clip_length = 5\ncrop_size = 8");
  EXPECT_TRUE(sdk::same_type(compact->fields()[0].dtype, sdk::u8));
  EXPECT_TRUE(sdk::same_type(compact->fields()[2].dtype, sdk::f32));
  EXPECT_EQ(shape(*compact, 2), (std::vector<int64_t>{5, 3, 8, 8}));
}

TEST_F(Spikes, ClipsAreWhatTheFilesHold) {
  for (const bool is_float : {true, false}) {
    for (const bool chunked : {true, false}) {
      const SequenceSpec spec{.float_images = is_float, .float_counts = is_float, .chunked = chunked};
      write_sequence(folder_, spec);
      const auto source = open_spikes(folder_, "clip_length = 2");
      ASSERT_EQ(source->length(0), 4u);
      for (uint64_t first = 0; first < 4; ++first) {
        const Sample sample = read_clip(*source, first);
        EXPECT_EQ(levels(*source, sample, "blur"), images(spec, false, first, 2));
        EXPECT_EQ(levels(*source, sample, "sharp"), images(spec, true, first, 2));
        EXPECT_EQ(values<float>(sample, "voxel"), voxels(spec, first, 2));
      }
    }
  }
}

// Larger than what is read at a time, and than a block of values that are looked at together.
TEST_F(Spikes, LargeFramesAreReadInBands) {
  const SequenceSpec spec{.frames = 1, .height = 264, .width = 328, .bins = 2};
  write_sequence(folder_, spec);
  const auto source = open_spikes(folder_, "clip_length = 1");
  const Sample sample = read_clip(*source, 0);
  EXPECT_EQ(levels(*source, sample, "blur"), images(spec, false, 0, 1));
  EXPECT_EQ(values<float>(sample, "voxel"), voxels(spec, 0, 1));
}

TEST_F(Spikes, ClipsStartEveryStrideAndStayInTheirSequence) {
  write_sequence(folder_, {.name = "a", .frames = 9});
  write_sequence(folder_, {.name = "b", .frames = 4});
  const auto source = open_spikes(folder_, "clip_length = 4\nclip_stride = 2");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"all"}));
  ASSERT_EQ(source->groups(0).size(), 2u);
  EXPECT_EQ(source->groups(0)[0].name, "a");
  EXPECT_EQ(source->groups(0)[0].count, 3u);  // from 0, 2 and 4
  EXPECT_EQ(source->groups(0)[1].first, 3u);
  EXPECT_EQ(source->groups(0)[1].count, 1u);
  EXPECT_EQ(levels(*source, read_clip(*source, 2), "blur"), images({}, false, 4, 4));
  EXPECT_EQ(levels(*source, read_clip(*source, 3), "blur"), images({}, false, 0, 4));
}

TEST_F(Spikes, FoldersAreSplits) {
  SequenceSpec other{.name = "v"};
  other.edit = [](const std::string& dataset, uint64_t, std::vector<float>& values) {
    if (dataset == "blur") values[0] = 1.0f / 255.0f;
  };
  write_sequence(folder_ / "val", other);
  write_sequence(folder_ / "train", {.name = "a"});
  write_sequence(folder_ / "train", {.name = "b", .frames = 8});
  const auto source = open_spikes(folder_, "clip_length = 5");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
  EXPECT_EQ(source->length(0), 5u);
  EXPECT_EQ(source->length(1), 1u);
  EXPECT_EQ(levels(*source, read_clip(*source, 4), "sharp"), images({}, true, 3, 5));
  EXPECT_EQ(levels(*source, read_clip(*source, 0, 0, false, 1), "sharp"), images({}, true, 0, 5));
  Reader reader = source->reader();  // which keeps open what it has read
  const auto level = [&](uint32_t split) {
    return levels(*source, read_fields(reader, *source, split, {0}, {0}, false)[0], "blur")[0];
  };
  EXPECT_EQ(level(0) + 1.0, level(1));
  EXPECT_EQ(open_spikes(folder_ / "train" / "b.hdf5", "clip_length = 8")->length(0), 1u);
}

TEST_F(Spikes, EvaluationTakesTheMiddle) {
  const SequenceSpec spec{};
  write_sequence(folder_, spec);
  const auto source = open_spikes(folder_, "clip_length = 2\ncrop_size = 8");
  const Box middle{4, 8, {8, 8}};
  const Sample sample = read_clip(*source, 1, 77);
  EXPECT_EQ(levels(*source, sample, "blur"), cut(images(spec, false, 1, 2), {16, 24}, middle));
  EXPECT_EQ(values<float>(sample, "voxel"), cut(voxels(spec, 1, 2), {16, 24}, middle));
}

// The part and the way it lies that one key draws are those of all fields and all frames.
TEST_F(Spikes, TrainingCutsAndTurnsAllFieldsAlike) {
  const SequenceSpec spec{};
  const Size size{16, 24};
  write_sequence(folder_, spec);
  const auto source = open_spikes(folder_, "clip_length = 2\ncrop_size = 8");
  const auto blur = images(spec, false, 0, 2), sharp = images(spec, true, 0, 2);
  const std::vector first_plane(blur.begin(), blur.begin() + 16 * 24);
  std::set<std::pair<uint64_t, uint64_t>> places;
  std::set<int> ways;
  for (uint64_t key = 0; key < 200; ++key) {
    const Sample sample = read_clip(*source, 0, key, true);
    const auto seen = levels(*source, sample, "blur");
    int found = 0;
    for (int at = 0; at < 8 * 9 * 17; ++at) {
      const int way = at % 8, place = at / 8;
      const Box box{static_cast<uint64_t>(place / 17), static_cast<uint64_t>(place % 17), {8, 8}};
      const Orientation orientation{(way & 1) != 0, (way & 2) != 0, (way & 4) != 0};
      if (!std::ranges::equal(cut(first_plane, size, box, orientation), std::span(seen).first(64))) continue;
      ++found;
      places.insert({box.top, box.left});
      ways.insert(way);
      EXPECT_EQ(seen, cut(blur, size, box, orientation));
      EXPECT_EQ(levels(*source, sample, "sharp"), cut(sharp, size, box, orientation));
      EXPECT_EQ(values<float>(sample, "voxel"), cut(voxels(spec, 0, 2), size, box, orientation));
    }
    ASSERT_EQ(found, 1) << key;
  }
  EXPECT_EQ(ways.size(), 8u);
  EXPECT_GT(places.size(), 90u);
  const auto [left, right] = std::ranges::minmax_element(places, {}, [](const auto& place) { return place.second; });
  EXPECT_EQ(places.begin()->first, 0u);
  EXPECT_EQ(places.rbegin()->first, 8u);
  EXPECT_EQ(left->second, 0u);
  EXPECT_EQ(right->second, 16u);
}

TEST_F(Spikes, WhatIsNotDrawnStaysAsItIs) {
  const SequenceSpec spec{.height = 16, .width = 16};
  write_sequence(folder_, spec);
  const auto fixed = open_spikes(folder_, "clip_length = 2\ncrop_size = 8\nrandom_crop = false\nrandom_flip = false");
  const auto whole = open_spikes(folder_, "clip_length = 2\nrandom_flip = false");
  EXPECT_FALSE(fixed->augments());
  EXPECT_FALSE(whole->augments());
  EXPECT_TRUE(open_spikes(folder_, "clip_length = 2\ncrop_size = 8\nrandom_flip = false")->augments());
  EXPECT_TRUE(open_spikes(folder_, "clip_length = 2")->augments());
  for (uint64_t key = 0; key < 10; ++key) {
    EXPECT_EQ(read_clip(*fixed, 0, key, true), read_clip(*fixed, 0));
    EXPECT_EQ(levels(*whole, read_clip(*whole, 0, key, true), "blur"), images(spec, false, 0, 2));
  }
}

// Frames that are no square are never transposed.
TEST_F(Spikes, WholeFramesAreFlippedOnly) {
  const SequenceSpec spec{};
  write_sequence(folder_, spec);
  const auto source = open_spikes(folder_, "clip_length = 1");
  const Box all{0, 0, {16, 24}};
  std::set<int> ways;
  for (uint64_t key = 0; key < 40; ++key) {
    const auto seen = levels(*source, read_clip(*source, 0, key, true), "blur");
    int way = 0;
    while (way < 4 && seen != cut(images(spec, false, 0, 1), all.size, all, {(way & 1) != 0, (way & 2) != 0, false}))
      ++way;
    ASSERT_LT(way, 4) << key;
    ways.insert(way);
  }
  EXPECT_EQ(ways.size(), 4u);
}

// Native resolution, in float32 and in uint8: parts are parts of the interpolated whole, to the bit.
TEST_F(Spikes, SmallVoxelsAreBroughtToTheFramesSize) {
  SequenceSpec spec{.voxel = {8, 6}};
  for (const bool is_float : {true, false}) {
    for (const bool chunked : {true, false}) {
      spec.float_counts = is_float;
      spec.chunked = chunked;
      write_sequence(folder_, spec);
      const auto whole = open_spikes(folder_, "clip_length = 2"),
                 part = open_spikes(folder_, "clip_length = 2\ncrop_size = 8");
      const auto all = values<float>(read_clip(*whole, 1), "voxel");
      EXPECT_EQ(values<float>(read_clip(*part, 1), "voxel"), cut(all, {16, 24}, {4, 8, {8, 8}}));
      const auto native = voxels(spec, 1, 2);
      // Row 3 of 16 lies at 1.25 of 8, column 6 of 24 at 1.125 of 6.
      const auto at = [&](uint64_t y, uint64_t x) { return double{native[y * 6 + x]}; };
      const double upper = 0.875 * at(1, 1) + 0.125 * at(1, 2), lower = 0.875 * at(2, 1) + 0.125 * at(2, 2);
      EXPECT_NEAR(all[3 * 24 + 6], 0.75 * upper + 0.25 * lower, 1e-6);
    }
  }
}

TEST_F(Spikes, VoxelsAreTransformedAsAsked) {
  write_sequence(folder_, {});
  const auto plain = open_spikes(folder_, "clip_length = 5\nvoxel_transform = \"none\"");
  const auto scaled = open_spikes(
      folder_, "clip_length = 5\nvoxel_transform = \"none\"\nvoxel_mean = 0.5\nvoxel_std = 2.0\nnum_bins = 3");
  const auto counts = values<float>(read_clip(*plain, 0), "voxel"),
             result = values<float>(read_clip(*scaled, 0), "voxel");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    ASSERT_EQ(counts[i], count_of(i / (3 * 384), i / 384 % 3, i % 384 / 24, i % 24));
    ASSERT_EQ(result[i], (counts[i] - 0.5f) / 2.0f);
  }
}

TEST_F(Spikes, SamplesDoNotDependOnTheirBatch) {
  write_sequence(folder_, {.name = "a"});
  write_sequence(folder_, {.name = "b", .float_counts = false, .chunked = true});
  const auto source = open_spikes(folder_, "clip_length = 3\ncrop_size = 8");
  Reader reader = source->reader();
  const auto batch = read_fields(reader, *source, 0, {4, 0, 3, 0}, {11, 12, 13, 14}, true);
  EXPECT_EQ(batch[0], read_clip(*source, 4, 11, true));
  EXPECT_EQ(batch[1], read_clip(*source, 0, 12, true));
  EXPECT_EQ(batch[2], read_clip(*source, 3, 13, true));
  EXPECT_EQ(batch[3], read_clip(*source, 0, 14, true));
  const auto voxels_only =
      read_fields(reader, *source, 0, {4}, {11}, true, [](const std::string& name) { return name == "voxel"; });
  EXPECT_EQ(voxels_only[0].at("voxel"), batch[0].at("voxel"));
}

TEST_F(Spikes, ThreadsReadAlike) {
  write_sequence(folder_, {.name = "a", .voxel = {8, 12}});
  write_sequence(folder_, {.name = "b", .voxel = {8, 12}, .float_counts = false, .chunked = true});
  const auto source = open_spikes(folder_, "clip_length = 3\ncrop_size = 8");
  std::vector<Sample> alone;
  for (uint64_t i = 0; i < source->length(0); ++i) alone.push_back(read_clip(*source, i, 100 + i, true));
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Reader reader = source->reader();
      for (uint64_t i = 0; i < alone.size(); ++i) {
        const uint64_t index = (i + static_cast<uint64_t>(t)) % alone.size();
        equal[t] += read_fields(reader, *source, 0, {index}, {100 + index}, true)[0] == alone[index] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, static_cast<int>(alone.size())));
}

}  // namespace
}  // namespace headroom
