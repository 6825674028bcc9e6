// The layouts that users have, value by value against libhdf5.
#include <set>

#include "hdf5_source.hpp"
#include "headroom/random.h"

namespace headroom {
namespace {

using Shapes = Hdf5Folder;

struct Record {
  double time;
  double angles[2];
  float emg[3];
};

void write_recording(const std::filesystem::path& file, size_t records, const std::vector<hsize_t>& chunk = {}) {
  const Hdf5Lock lock;
  std::vector<Record> data(records);
  for (size_t r = 0; r < records; ++r) {
    const auto x = static_cast<double>(r);
    const auto y = static_cast<float>(r);
    data[r] = {x / 100, {x + 0.25, -x}, {y, 2 * y, 1000 + y}};
  }
  const hsize_t two = 2, three = 3;
  const Handle angles(H5Tarray_create2(H5T_IEEE_F64LE, 1, &two)), emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &three));
  const Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Record)));
  H5Tinsert(type.get(), "time", offsetof(Record, time), H5T_IEEE_F64LE);
  H5Tinsert(type.get(), "joint_angles", offsetof(Record, angles), angles.get());
  H5Tinsert(type.get(), "emg", offsetof(Record, emg), emg.get());
  const Handle opened = create_file(file);
  write_dataset(opened.get(), "/emg2pose/timeseries", type.get(), {records}, data, chunk, chunk.empty() ? 0 : 4);
  const Handle scalar(H5Screate(H5S_SCALAR));
  const Handle group(H5Gopen2(opened.get(), "/emg2pose", H5P_DEFAULT));
  const Handle rate(H5Acreate2(group.get(), "sample_rate", H5T_IEEE_F64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
  const double hertz = 2000.0;
  H5Awrite(rate.get(), H5T_NATIVE_DOUBLE, &hertz);
}

constexpr const char* kEmg = R"(
window_size = 10
stride = 4
sample_rate_hz = 2000.0
fields = [
  { name = "emg", dataset = "/emg2pose/timeseries", member = "emg", normalize = true, axes = ["time", "channel"], unit = "V" },
  { name = "joint_angles", dataset = "/emg2pose/timeseries", member = "joint_angles" },
  { name = "wide", dataset = "/emg2pose/timeseries", member = "joint_angles", dtype = "float64", length = 3, offset = 7 },
  { name = "time", dataset = "/emg2pose/timeseries", member = "time", rows = "row", offset = 9, dtype = "float64" },
  { name = "rate", dataset = "/emg2pose", attribute = "sample_rate" },
])";

TEST_F(Shapes, WindowsOfRecords) {
  write_recording(folder_ / "a.hdf5", 40);
  write_recording(folder_ / "b.h5", 33, {8});
  write_recording(folder_ / "short.hdf5", 9);
  const auto source = open_hdf5(folder_, kEmg);
  ASSERT_EQ(source->fields().size(), 5u);
  const Field& emg = source->fields()[0];
  EXPECT_EQ(emg.shape, (std::vector<int64_t>{10, 3}));
  EXPECT_EQ(emg.axes, (std::vector<std::string>{"time", "channel"}));
  EXPECT_TRUE(emg.normalize);
  EXPECT_EQ(emg.channel_axis, 1);
  EXPECT_EQ(emg.sample_rate_hz, 2000.0);
  EXPECT_EQ(emg.unit, "V");
  EXPECT_EQ(dtype_name(source->fields()[1].dtype), "float32");
  EXPECT_EQ(dtype_name(source->fields()[2].dtype), "float64");
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(source->fields()[3].shape, (std::vector<int64_t>{}));
  ASSERT_EQ(source->groups(0).size(), 2u);
  EXPECT_EQ(source->groups(0)[0].name, "a");
  EXPECT_EQ(source->groups(0)[0].count, 8u);
  EXPECT_EQ(source->groups(0)[1].name, "b");
  EXPECT_EQ(source->groups(0)[1].count, 6u);
  EXPECT_EQ(source->files().size(), 3u);

  for (const Group& group : source->groups(0)) {
    const auto file = folder_ / (group.name == "a" ? "a.hdf5" : "b.h5");
    const auto all_emg = library_values<float>(file, "/emg2pose/timeseries", H5T_NATIVE_FLOAT, "emg", 3);
    const auto all_angles = library_values<double>(file, "/emg2pose/timeseries", H5T_NATIVE_DOUBLE, "joint_angles", 2);
    const auto all_time = library_values<double>(file, "/emg2pose/timeseries", H5T_NATIVE_DOUBLE, "time");
    for (uint64_t i = 0; i < group.count; ++i) {
      const Sample sample = read_sample(*source, group.first + i);
      const auto got_emg = values<float>(sample, "emg"), got_angles = values<float>(sample, "joint_angles");
      const auto wide = values<double>(sample, "wide");
      for (size_t k = 0; k < 30; ++k) ASSERT_EQ(got_emg[k], all_emg[4 * i * 3 + k]);
      for (size_t k = 0; k < 20; ++k) ASSERT_EQ(got_angles[k], static_cast<float>(all_angles[4 * i * 2 + k]));
      for (size_t k = 0; k < 6; ++k) ASSERT_EQ(wide[k], all_angles[(4 * i + 7) * 2 + k]);
      ASSERT_EQ(values<double>(sample, "time")[0], all_time[4 * i + 9]);
      ASSERT_EQ(values<float>(sample, "rate")[0], 2000.0f);
    }
  }
}

TEST_F(Shapes, JitterStaysInTheSequenceAndIsTheKeysAlone) {
  write_recording(folder_ / "a.hdf5", 40);
  const auto source = open_hdf5(folder_, kEmg), still = open_hdf5(folder_, std::string(kEmg) + "\njitter = false");
  std::set<float> first, last;
  for (uint64_t key = 0; key < 100; ++key) {
    first.insert(values<float>(read_sample(*source, 0, hr_sample_key(1, 0, 0, key), true), "emg")[0]);
    last.insert(values<float>(read_sample(*source, 7, hr_sample_key(1, 0, 0, key), true), "emg")[0]);
    ASSERT_EQ(values<float>(read_sample(*source, 2, key), "emg")[0], 8.0f);
    ASSERT_EQ(values<float>(read_sample(*still, 2, key, true), "emg")[0], 8.0f);
  }
  EXPECT_THAT(first, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(last, testing::ElementsAre(28, 29, 30));
}

// Two cameras, qpos, and the next rows of action with padding: an episode of ACT.
void write_episode(const std::filesystem::path& file, size_t frames, size_t first) {
  const Hdf5Lock lock;
  const Handle opened = create_file(file);
  const size_t pixels = 4 * 5 * 3;
  write_dataset(opened.get(), "/observations/images/top", H5T_STD_U8LE, {frames, 4, 5, 3},
                counting<uint8_t>(frames * pixels, first), {1, 4, 5, 3});
  write_dataset(opened.get(), "/observations/images/wrist", H5T_STD_U8LE, {frames, 4, 5, 3},
                counting<uint8_t>(frames * pixels, first + 7), {1, 4, 5, 3}, 4);
  write_dataset(opened.get(), "/observations/qpos", H5T_IEEE_F64LE, {frames, 2},
                counting<double>(2 * frames, 1000 * first));
  write_dataset(opened.get(), "/action", H5T_IEEE_F64LE, {frames, 2}, counting<double>(2 * frames, 2000 * first + 1));
}

constexpr const char* kEpisodes = R"(
sample = "one_per_group"
fields = [
  { name = "top", dataset = "/observations/images/top", rows = "row", axes = ["height", "width", "channel"] },
  { name = "wrist", dataset = "/observations/images/wrist", rows = "row" },
  { name = "qpos", dataset = "/observations/qpos", rows = "row", normalize = true },
  { name = "action", dataset = "/action", length = 6, pad = "zeros", pad_mask = "is_pad", normalize = true },
])";

void expect_frame(const Sample& sample, const std::filesystem::path& file, size_t t, size_t frames) {
  const auto top = library_values<uint8_t>(file, "/observations/images/top", H5T_NATIVE_UINT8);
  const auto wrist = library_values<uint8_t>(file, "/observations/images/wrist", H5T_NATIVE_UINT8);
  const auto qpos = library_values<double>(file, "/observations/qpos", H5T_NATIVE_DOUBLE);
  const auto action = library_values<double>(file, "/action", H5T_NATIVE_DOUBLE);
  const auto got_top = values<uint8_t>(sample, "top"), got_wrist = values<uint8_t>(sample, "wrist");
  for (size_t k = 0; k < 60; ++k) {
    ASSERT_EQ(got_top[k], top[t * 60 + k]);
    ASSERT_EQ(got_wrist[k], wrist[t * 60 + k]);
  }
  const auto got_qpos = values<float>(sample, "qpos"), got_action = values<float>(sample, "action");
  const auto is_pad = values<uint8_t>(sample, "is_pad");
  for (size_t k = 0; k < 2; ++k) ASSERT_EQ(got_qpos[k], static_cast<float>(qpos[2 * t + k]));
  for (size_t r = 0; r < 6; ++r) {
    const bool there = t + r < frames;
    ASSERT_EQ(is_pad[r], there ? 0 : 1);
    for (size_t k = 0; k < 2; ++k)
      ASSERT_EQ(got_action[2 * r + k], there ? static_cast<float>(action[2 * (t + r) + k]) : 0.0f);
  }
}

TEST_F(Shapes, OneFrameOfEachEpisode) {
  write_episode(folder_ / "episode_0.hdf5", 9, 1);
  write_episode(folder_ / "episode_1.hdf5", 4, 2);
  const auto source = open_hdf5(folder_, kEpisodes);
  ASSERT_EQ(source->length(0), 2u);
  ASSERT_EQ(source->groups(0).size(), 2u);
  ASSERT_EQ(source->fields().size(), 5u);
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{4, 5, 3}));
  EXPECT_EQ(dtype_name(source->fields()[0].dtype), "uint8");
  EXPECT_EQ(source->fields()[4].name, "is_pad");
  EXPECT_EQ(dtype_name(source->fields()[4].dtype), "bool");
  EXPECT_EQ(source->fields()[4].shape, (std::vector<int64_t>{6}));
  expect_frame(read_sample(*source, 0), folder_ / "episode_0.hdf5", 4, 9);
  expect_frame(read_sample(*source, 1), folder_ / "episode_1.hdf5", 1, 4);

  std::set<float> seen;
  for (uint64_t epoch = 0; epoch < 200; ++epoch) {
    const Sample sample = read_sample(*source, 0, hr_sample_key(3, 0, epoch, 0), true);
    const auto t = static_cast<size_t>(values<float>(sample, "qpos")[0] - 1000.0f) / 2;
    seen.insert(static_cast<float>(t));
    expect_frame(sample, folder_ / "episode_0.hdf5", t, 9);
  }
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Shapes, PadsWithTheEdgesOfAnyWindow) {
  {
    const Hdf5Lock lock;
    const Handle opened = create_file(folder_ / "a.h5");
    write_dataset(opened.get(), "x", H5T_IEEE_F32LE, {3, 2}, counting<float>(6));
    write_dataset(opened.get(), "sideways", H5T_IEEE_F32LE, {2, 3}, counting<float>(6));
  }
  const auto source = open_hdf5(folder_, R"(
fields = [
  { name = "edge", dataset = "x", length = 5, offset = -2, pad = "edge", pad_mask = "edge_pad" },
  { name = "zeros", dataset = "x", length = 5, offset = -2, pad = "zeros" },
  { name = "later", dataset = "x", length = 2, offset = 4, pad = "edge" },
  { name = "sideways", dataset = "sideways", axis = 1, length = 5, offset = -2, pad = "edge" },
  { name = "column", dataset = "sideways", axis = 1, rows = "row" },
])");
  ASSERT_EQ(source->length(0), 3u);
  EXPECT_EQ(source->fields()[3].shape, (std::vector<int64_t>{2, 5}));
  for (int t = 0; t < 3; ++t) {
    const Sample sample = read_sample(*source, static_cast<uint64_t>(t));
    for (int r = 0; r < 5; ++r) {
      const int row = t - 2 + r, near = std::clamp(row, 0, 2);
      const bool there = row == near;
      EXPECT_EQ(values<uint8_t>(sample, "edge_pad")[r], there ? 0 : 1);
      for (int c = 0; c < 2; ++c) {
        EXPECT_EQ(values<float>(sample, "edge")[2 * r + c], static_cast<float>(2 * near + c));
        EXPECT_EQ(values<float>(sample, "zeros")[2 * r + c], there ? static_cast<float>(2 * row + c) : 0.0f);
        EXPECT_EQ(values<float>(sample, "sideways")[5 * c + r], static_cast<float>(3 * c + near));
      }
    }
    EXPECT_THAT(values<float>(sample, "later"), testing::ElementsAre(4, 5, 4, 5));
    EXPECT_THAT(values<float>(sample, "column"), testing::ElementsAre(t, 3 + t));
  }
}

// Frames of two pictures and a block of voxels, and one box cut from all of them.
void write_spikes(const std::filesystem::path& file, size_t frames) {
  const Hdf5Lock lock;
  const Handle opened = create_file(file);
  write_dataset(opened.get(), "blur", H5T_IEEE_F32LE, {frames, 6, 8, 3}, counting<float>(frames * 144), {1, 6, 8, 3});
  write_dataset(opened.get(), "sharp", H5T_IEEE_F32LE, {frames, 6, 8, 3}, counting<float>(frames * 144, 50000));
  write_dataset(opened.get(), "voxel", H5T_IEEE_F32LE, {frames, 4, 6, 8}, counting<float>(frames * 192, 90000),
                {1, 2, 3, 4}, 3);
}

constexpr const char* kSpikes = R"(
fields = [
  { name = "blur", dataset = "blur", rows = "row", axes = ["height", "width", "colour"] },
  { name = "sharp", dataset = "sharp", rows = "row", axes = ["height", "width", "colour"] },
  { name = "voxel", dataset = "voxel", rows = "row", axes = ["bin", "height", "width"] },
])";

// What libhdf5 has of frame `t` in the box of `h` x `w` at (y, x); `whole` is 6 x 8.
void expect_box(const Sample& sample, const std::filesystem::path& file, size_t t, size_t y, size_t x, size_t h,
                size_t w) {
  const auto blur = library_values<float>(file, "blur", H5T_NATIVE_FLOAT);
  const auto sharp = library_values<float>(file, "sharp", H5T_NATIVE_FLOAT);
  const auto voxel = library_values<float>(file, "voxel", H5T_NATIVE_FLOAT);
  const auto got_blur = values<float>(sample, "blur"), got_sharp = values<float>(sample, "sharp");
  const auto got_voxel = values<float>(sample, "voxel");
  ASSERT_EQ(got_blur.size(), h * w * 3);
  ASSERT_EQ(got_voxel.size(), 4 * h * w);
  for (size_t i = 0; i < h; ++i) {
    for (size_t j = 0; j < w; ++j) {
      for (size_t c = 0; c < 3; ++c) {
        const size_t from = ((t * 6 + y + i) * 8 + x + j) * 3 + c, to = (i * w + j) * 3 + c;
        ASSERT_EQ(got_blur[to], blur[from]);
        ASSERT_EQ(got_sharp[to], sharp[from]);
      }
      for (size_t b = 0; b < 4; ++b)
        ASSERT_EQ(got_voxel[(b * h + i) * w + j], voxel[((t * 4 + b) * 6 + y + i) * 8 + x + j]);
    }
  }
}

TEST_F(Shapes, WholeFrames) {
  write_spikes(folder_ / "s.h5", 3);
  const auto source = open_hdf5(folder_, kSpikes);
  ASSERT_EQ(source->length(0), 3u);
  for (uint64_t t = 0; t < 3; ++t) expect_box(read_sample(*source, t, 9, true), folder_ / "s.h5", t, 0, 0, 6, 8);
}

TEST_F(Shapes, OneCropForAllFields) {
  write_spikes(folder_ / "s.h5", 3);
  const auto source = open_hdf5(folder_, std::string("crop = [4, 3]") + kSpikes);
  EXPECT_TRUE(source->augments());
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{4, 3, 3}));
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{4, 4, 3}));
  expect_box(read_sample(*source, 1), folder_ / "s.h5", 1, 1, 2, 4, 3);
  std::set<std::pair<size_t, size_t>> corners;
  for (uint64_t key = 0; key < 200; ++key) {
    const Sample sample = read_sample(*source, 2, hr_sample_key(5, 0, 0, key), true);
    const auto corner = static_cast<size_t>(values<float>(sample, "sharp")[0] - 50000.0f) / 3 - 2 * 48;
    corners.emplace(corner / 8, corner % 8);
    expect_box(sample, folder_ / "s.h5", 2, corner / 8, corner % 8, 4, 3);
  }
  EXPECT_EQ(corners.size(), 3u * 6u);
}

// MATLAB writes the axes of its arrays in reverse, behind a block of its own.
TEST_F(Shapes, MatlabFiles) {
  {
    const Hdf5Lock lock;
    const Handle creation(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(creation.get(), 512);
    const Handle opened(H5Fcreate((folder_ / "a.mat").c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
    write_dataset(opened.get(), "emg", H5T_IEEE_F64LE, {2, 20}, counting<double>(40), {2, 7}, 3);  // 20 x 2
    write_dataset(opened.get(), "frames", H5T_STD_U8LE, {20, 3, 2}, counting<uint8_t>(120));       // 2 x 3 x 20
    write_dataset(opened.get(), "s/gain", H5T_IEEE_F64LE, {1, 1}, std::vector<double>{2.5});
  }
  const auto source = open_hdf5(folder_, R"(
matlab = true
window_size = 6
stride = 3
fields = [
  { name = "emg", dataset = "emg", normalize = true },
  { name = "frames", dataset = "frames", axis = 2 },
  { name = "frame", dataset = "frames", axis = 2, rows = "row", offset = 5 },
  { name = "whole", dataset = "emg", rows = "all", dtype = "float64" },
  { name = "gain", dataset = "s/gain", rows = "all" },
])");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(source->fields()[0].channel_axis, 1);
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{2, 3, 6}));
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(source->fields()[3].shape, (std::vector<int64_t>{20, 2}));
  ASSERT_EQ(source->length(0), 5u);
  const auto emg = library_values<double>(folder_ / "a.mat", "emg", H5T_NATIVE_DOUBLE);
  const auto frames = library_values<uint8_t>(folder_ / "a.mat", "frames", H5T_NATIVE_UINT8);
  for (size_t i = 0; i < 5; ++i) {
    const size_t t = 3 * i;
    const Sample sample = read_sample(*source, i);
    const auto got = values<float>(sample, "emg");
    const auto got_frames = values<uint8_t>(sample, "frames"), got_frame = values<uint8_t>(sample, "frame");
    const auto whole = values<double>(sample, "whole");
    for (size_t r = 0; r < 6; ++r) {
      for (size_t c = 0; c < 2; ++c) ASSERT_EQ(got[2 * r + c], static_cast<float>(emg[20 * c + t + r]));
    }
    for (size_t a = 0; a < 2; ++a) {
      for (size_t b = 0; b < 3; ++b) {
        for (size_t r = 0; r < 6; ++r) ASSERT_EQ(got_frames[(a * 3 + b) * 6 + r], frames[(t + r) * 6 + b * 2 + a]);
        ASSERT_EQ(got_frame[a * 3 + b], frames[(t + 5) * 6 + b * 2 + a]);
      }
    }
    for (size_t r = 0; r < 20; ++r) {
      for (size_t c = 0; c < 2; ++c) ASSERT_EQ(whole[2 * r + c], emg[20 * c + r]);
    }
    EXPECT_EQ(values<float>(sample, "gain")[0], 2.5f);
  }
}

TEST_F(Shapes, AFileEachIsASampleWhereNoFieldCountsRows) {
  for (size_t i = 0; i < 3; ++i) {
    const Hdf5Lock lock;
    const Handle opened = create_file(folder_ / (std::to_string(i) + ".h5"));
    write_dataset(opened.get(), "x", H5T_STD_I16LE, {2, 2}, counting<int16_t>(4, 10 * i));
    write_dataset(opened.get(), "label", H5T_STD_I64LE, {}, std::vector<int64_t>{static_cast<int64_t>(i)});
  }
  const auto source = open_hdf5(folder_, R"(
fields = [ { name = "x", dataset = "x", rows = "all", dtype = "float32" },
           { name = "label", dataset = "label", rows = "all" } ])");
  ASSERT_EQ(source->length(0), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    const Sample sample = read_sample(*source, i);
    EXPECT_EQ(values<float>(sample, "x"), counting<float>(4, 10 * i));
    EXPECT_EQ(values<int64_t>(sample, "label")[0], static_cast<int64_t>(i));
  }
}

TEST_F(Shapes, TheShortestDatasetEndsASequence) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "a.h5");
    write_dataset(file.get(), "x", H5T_IEEE_F32LE, {10}, counting<float>(10));
    write_dataset(file.get(), "y", H5T_IEEE_F32LE, {8}, counting<float>(8, 100));
  }
  const auto source = open_hdf5(folder_, R"(fields = [ { name = "x", dataset = "x", length = 3, pad = "zeros" },
                                                        { name = "y", dataset = "y", rows = "row" } ])");
  ASSERT_EQ(source->length(0), 8u);
  EXPECT_THAT(values<float>(read_sample(*source, 6), "x"), testing::ElementsAre(6, 7, 0));
}

TEST_F(Shapes, ASampleIsTheSameInAnyBatchAndReader) {
  write_recording(folder_ / "a.hdf5", 60, {16});
  write_recording(folder_ / "b.hdf5", 45);
  const auto source = open_hdf5(folder_, kEmg);
  const uint64_t n = source->length(0);
  std::vector<uint64_t> index, key;
  for (uint64_t i = 0; i < 3 * n; ++i) {
    index.push_back(i * 7 % n);
    key.push_back(100 + i * 7 % n);
  }
  Reader together = source->reader();
  const auto samples = read_fields(together, *source, 0, index, key, true);
  for (size_t i = 0; i < index.size(); ++i) ASSERT_EQ(samples[i], read_sample(*source, index[i], key[i], true)) << i;
  for (const std::string only : {"emg", "wide", "rate"}) {
    const auto part =
        read_fields(together, *source, 0, index, key, true, [&](const std::string& name) { return name == only; });
    for (size_t i = 0; i < index.size(); ++i) ASSERT_EQ(part[i].at(only), samples[i].at(only));
  }
}

TEST_F(Shapes, ReadsMoreFilesThanItKeepsOpen) {
  for (size_t i = 0; i < 70; ++i) {
    const Hdf5Lock lock;
    const Handle opened = create_file(folder_ / (std::to_string(100 + i) + ".h5"));
    write_dataset(opened.get(), "x", H5T_IEEE_F32LE, {2}, std::vector<float>{static_cast<float>(i), 0.5f});
  }
  const auto source = open_hdf5(folder_, R"(fields = [ { name = "x", dataset = "x", length = 2 } ])");
  Reader reader = source->reader();
  std::vector<uint64_t> index, key(140, 0);
  for (uint64_t i = 0; i < 140; ++i) index.push_back(i * 37 % 70);
  const auto samples = read_fields(reader, *source, 0, index, key, false);
  for (size_t i = 0; i < index.size(); ++i) ASSERT_EQ(values<float>(samples[i], "x")[0], static_cast<float>(index[i]));
}

}  // namespace
}  // namespace headroom
