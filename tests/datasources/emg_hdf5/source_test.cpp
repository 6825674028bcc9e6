#include <set>

#include "emg_source.hpp"
#include "headroom/random.h"

namespace headroom {
namespace {

using EmgSourceTest = TemporaryFolder;

// The record a window begins with, told from its first EMG value.
uint64_t first_record(const EmgSample& sample) { return static_cast<uint64_t>(sample.emg[0]) / 100; }

TEST_F(EmgSourceTest, DescribesItsFieldsAndGroups) {
  write_recording(folder_ / "b.hdf5", {.records = 40, .joints = 2, .angle_unit = "deg (as the camera sees it)"});
  write_recording(folder_ / "a.hdf5", {.records = 30, .joints = 2, .angle_unit = "deg"});
  const auto source = open_emg(folder_, "window_size = 10\nstride = 10\npadding = [2, 3]\nskip_ik_failures = false");
  ASSERT_EQ(source->fields().size(), 3u);
  const auto &emg = source->fields()[0], &angles = source->fields()[1], &valid = source->fields()[2];
  EXPECT_EQ(emg.name, "emg");
  EXPECT_EQ(emg.shape, (std::vector<int64_t>{15, 3}));
  EXPECT_EQ(emg.axes, (std::vector<std::string>{"time", "channel"}));
  EXPECT_TRUE(emg.normalize);
  EXPECT_EQ(emg.channel_axis, 1);
  EXPECT_EQ(emg.sample_rate_hz, 100.0);
  EXPECT_EQ(angles.name, "joint_angles");
  EXPECT_EQ(angles.shape, (std::vector<int64_t>{15, 2}));
  EXPECT_EQ(angles.unit, "deg");
  EXPECT_FALSE(angles.normalize);
  EXPECT_EQ(valid.shape, (std::vector<int64_t>{15}));
  EXPECT_EQ(dtype_name(valid.dtype), "uint8");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"all"}));
  ASSERT_EQ(source->groups(0).size(), 2u);
  EXPECT_EQ(source->groups(0)[0].name, "a");
  EXPECT_EQ(source->groups(0)[0].count, 3u);
  EXPECT_EQ(source->groups(0)[1].name, "b");
  EXPECT_EQ(source->groups(0)[1].first, 3u);
  EXPECT_EQ(source->length(0), 7u);
}

TEST_F(EmgSourceTest, LeavesOutRecordingsWithoutAWindow) {
  write_recording(folder_ / "long.hdf5", {.records = 40});
  write_recording(folder_ / "short.hdf5", {.records = 9});
  const auto source = open_emg(folder_, "window_size = 10\nskip_ik_failures = false");
  ASSERT_EQ(source->groups(0).size(), 1u);
  EXPECT_EQ(source->groups(0)[0].name, "long");
  EXPECT_EQ(source->files().size(), 2u);
}

TEST_F(EmgSourceTest, CutsRecordingsIntoParts) {
  write_recording(folder_ / "a.hdf5", {.records = 50});
  const auto source = open_emg(folder_, "window_size = 10\nstride = 5\nskip_ik_failures = false\nparts = 3");
  ASSERT_EQ(source->groups(0).size(), 3u);
  const uint64_t begin[] = {0, 16, 33}, end[] = {16, 33, 50};
  for (uint64_t part = 0; part < 3; ++part) {
    const Group& group = source->groups(0)[part];
    EXPECT_EQ(group.name, "a#" + std::to_string(part));
    EXPECT_EQ(group.count, (end[part] - begin[part] - 10) / 5 + 1);
    for (uint64_t i = 0; i < group.count; ++i) {
      EXPECT_EQ(first_record(read_sample(*source, group.first + i)), begin[part] + 5 * i);
      for (uint64_t key = 0; key < 40; ++key) {
        const EmgSample sample = read_sample(*source, group.first + i, hr_sample_key(3, 0, key, i), true);
        ASSERT_LT(first_record(sample) + 9, end[part]);
      }
    }
  }
}

TEST_F(EmgSourceTest, ReadsChunkedAndCompressedAlike) {
  write_recording(folder_ / "plain.hdf5", {.records = 90});
  write_recording(folder_ / "packed.hdf5", {.records = 90, .chunk = {16}});
  const auto plain = open_emg(folder_ / "plain.hdf5", "window_size = 20"),
             packed = open_emg(folder_ / "packed.hdf5", "window_size = 20");
  ASSERT_EQ(plain->length(0), packed->length(0));
  for (const uint64_t i : {0u, 15u, 68u}) {
    const EmgSample a = read_sample(*plain, i), b = read_sample(*packed, i);
    EXPECT_EQ(first_record(a), i);
    EXPECT_EQ(a.emg, b.emg);
    EXPECT_EQ(a.angles, b.angles);
    EXPECT_EQ(a.valid, b.valid);
  }
}

TEST_F(EmgSourceTest, SaysWhichRecordsAWindowShows) {
  write_recording(folder_ / "a.hdf5", {.records = 50});
  write_recording(folder_ / "b.hdf5", {.records = 40});
  const auto source =
      open_emg(folder_, "window_size = 10\nstride = 5\nskip_ik_failures = false\nparts = 2\npadding = [7, 2]");
  ASSERT_EQ(source->groups(0).size(), 4u);
  for (const Group& group : source->groups(0)) {
    for (uint64_t i = group.first; i < group.first + group.count; ++i) {
      const EmgSample sample = read_sample(*source, i);
      for (const uint32_t field : {0u, 1u, 2u}) {
        const auto shown = source->recorded_rows(field, 0, i);
        ASSERT_TRUE(shown);
        EXPECT_EQ(shown->rows, 19u);
        EXPECT_EQ(shown->length, group.name.front() == 'a' ? 50u : 40u);
        // The window itself is whole, whatever of its context lies outside of the recording.
        EXPECT_EQ(sample.emg[3 * 7], static_cast<float>(100 * (shown->first + 7))) << group.name;
      }
    }
  }
}

TEST_F(EmgSourceTest, PadsBeyondBothEndsWithZeros) {
  write_recording(folder_ / "a.hdf5", {.records = 12});
  const auto source = open_emg(folder_, "window_size = 10\nstride = 2\nskip_ik_failures = false\npadding = [3, 4]");
  ASSERT_EQ(source->length(0), 2u);
  const int64_t begin[] = {-3, -1};
  for (uint64_t i = 0; i < 2; ++i) {
    const EmgSample sample = read_sample(*source, i);
    ASSERT_EQ(sample.valid.size(), 17u);
    for (int64_t p = 0; p < 17; ++p) {
      const int64_t record = begin[i] + p;
      const bool there = record >= 0 && record < 12;
      EXPECT_EQ(sample.valid[p], there ? 1 : 0);
      EXPECT_EQ(sample.emg[p * 3 + 2], there ? static_cast<float>(100 * record + 2) : 0.0f);
      EXPECT_EQ(sample.angles[p * 2], there ? static_cast<float>(record) + 0.5f : 0.0f);
    }
  }
}

TEST_F(EmgSourceTest, MarksIkFailures) {
  write_recording(folder_ / "a.hdf5", {.records = 40, .edit = [](uint64_t r, auto& angles, auto&) {
                                         if (r == 7) angles = {0.0f, 0.0f};
                                         if (r == 8) angles = {-1e-8f, 1e-9f};
                                         if (r == 9) angles = {0.0f, 1.1e-8f};
                                       }});
  const auto everything = open_emg(folder_, "window_size = 12\nskip_ik_failures = false");
  EXPECT_THAT(read_sample(*everything, 0).valid, testing::ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1));
  const auto skipping = open_emg(folder_, "window_size = 12");
  EXPECT_EQ(first_record(read_sample(*skipping, 0)), 9u);
}

TEST_F(EmgSourceTest, TellsTheRateFromTimeStamps) {
  write_recording(folder_ / "a.hdf5", {.sample_rate_hz = 0.0});
  EXPECT_EQ(open_emg(folder_, "window_size = 10")->fields()[0].sample_rate_hz, 100.0);
}

TEST_F(EmgSourceTest, JitterReachesEveryStartBelowTheStrideAndIsTheKeysAlone) {
  write_recording(folder_ / "a.hdf5", {.records = 47});
  const auto source = open_emg(folder_, "window_size = 20\nstride = 10\nskip_ik_failures = false");
  ASSERT_EQ(source->length(0), 3u);
  std::set<uint64_t> first, last;
  for (uint64_t epoch = 0; epoch < 400; ++epoch) {
    const uint64_t key = hr_sample_key(1, 0, epoch, 0);
    first.insert(first_record(read_sample(*source, 0, key, true)));
    last.insert(first_record(read_sample(*source, 2, key, true)));
    ASSERT_EQ(first_record(read_sample(*source, 0, key)), 0u) << "jitter without AUGMENT";
  }
  EXPECT_THAT(first, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(last, testing::ElementsAre(20, 21, 22, 23, 24, 25, 26));

  const auto together = read_samples(*source, 0, {2, 0, 1}, {11, 12, 13}, true);
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t index[] = {2, 0, 1};
    EXPECT_EQ(together[i].emg, read_sample(*source, index[i], 11 + i, true).emg);
  }
  const auto still = open_emg(folder_, "window_size = 20\nstride = 10\nskip_ik_failures = false\njitter = false");
  for (uint64_t key = 0; key < 50; ++key) ASSERT_EQ(first_record(read_sample(*still, 1, key, true)), 10u);
}

TEST_F(EmgSourceTest, RotatesTheChannelsEitherWayInTrainingOnly) {
  write_recording(folder_ / "a.hdf5", {.channels = 5});
  const auto source = open_emg(folder_, "window_size = 4\njitter = false\nchannel_rotation = 1");
  const EmgSample plain = read_sample(*source, 3);
  std::set<float> first;
  for (uint64_t key = 0; key < 60; ++key) {
    const EmgSample rolled = read_sample(*source, 3, hr_sample_key(2, 0, 0, key), true);
    first.insert(rolled.emg[0]);
    const auto by = static_cast<std::size_t>(rolled.emg[0] - 300.0f);  // channel that came to place 0
    for (std::size_t i = 0; i < rolled.emg.size(); ++i) ASSERT_EQ(rolled.emg[i], plain.emg[i / 5 * 5 + (i + by) % 5]);
    ASSERT_EQ(rolled.angles, plain.angles);
    ASSERT_EQ(read_sample(*source, 3, key).emg, plain.emg);
  }
  EXPECT_THAT(first, testing::ElementsAre(300.0f, 301.0f, 304.0f));
}

TEST_F(EmgSourceTest, ReadsMoreRecordingsThanItKeepsOpen) {
  for (int i = 0; i < 70; ++i) {
    write_recording(folder_ / (std::to_string(100 + i) + ".hdf5"),
                    {.records = 10, .edit = [i](uint64_t, auto&, auto& emg) { emg[1] = static_cast<float>(i); }});
  }
  const auto source = open_emg(folder_, "window_size = 10\nskip_ik_failures = false");
  std::vector<uint64_t> index, key(140, 0);
  for (uint64_t i = 0; i < 140; ++i) index.push_back(i * 37 % 70);
  const auto samples = read_samples(*source, 0, index, key);
  for (std::size_t i = 0; i < index.size(); ++i) ASSERT_EQ(samples[i].emg[1], static_cast<float>(index[i]));
}

TEST_F(EmgSourceTest, FillsOnlyTheSlotsThatAreWanted) {
  write_recording(folder_ / "a.hdf5", {});
  const auto source = open_emg(folder_, "window_size = 5");
  const EmgSample all = read_sample(*source, 4);
  const uint64_t index[] = {4}, key[] = {0};
  int64_t shapes[3][3] = {{1, 5, 3}, {1, 5, 2}, {1, 5, 0}};
  for (int wanted = 1; wanted < 8; ++wanted) {
    EmgSample part{std::vector<float>(15), std::vector<float>(10), std::vector<uint8_t>(5)};
    void* data[] = {part.emg.data(), part.angles.data(), part.valid.data()};
    std::vector<DLTensor> slots;
    for (int f = 0; f < 3; ++f) {
      slots.push_back({(wanted >> f & 1) != 0 ? data[f] : nullptr,
                       {kDLCPU, 0},
                       f < 2 ? 3 : 2,
                       source->fields()[f].dtype,
                       shapes[f],
                       nullptr,
                       0});
    }
    source->reader().read(0, index, key, false, slots);
    if ((wanted & 1) != 0) {
      EXPECT_EQ(part.emg, all.emg);
    }
    if ((wanted & 2) != 0) {
      EXPECT_EQ(part.angles, all.angles);
    }
    if ((wanted & 4) != 0) {
      EXPECT_EQ(part.valid, all.valid);
    }
  }
}

}  // namespace
}  // namespace headroom
