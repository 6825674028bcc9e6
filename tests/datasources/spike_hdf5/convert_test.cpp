// `headroom data convert --source spike_hdf5`, as a user meets it.
#include <cmath>
#include <limits>

#include "../../end_to_end/program.hpp"
#include "png_writer.hpp"
#include "spike_source.hpp"

namespace headroom {
namespace {

class ConvertSequences : public TemporaryFolder {
 protected:
  Finished convert(std::vector<std::string> words) const {
    words.insert(words.begin(), {"data", "convert"});
    words.insert(words.end(), {"--source", "spike_hdf5"});
    return headroom_program(std::move(words), {.folder = folder_, .environment = {}});
  }
  template <class T>
  std::vector<T> stored(const std::string& file, const std::string& dataset) const {
    const sdk::Array array(sdk::Host(host()), folder_ / file, dataset);
    uint64_t values = 1;
    for (const uint64_t extent : array.info().shape) values *= extent;
    std::vector<T> result(values);
    array.read_rows(0, array.info().shape[0], std::array{sdk::target(result.data())});
    return result;
  }
  DLDataType type(const std::string& file, const std::string& dataset) const {
    return sdk::Array(sdk::Host(host()), folder_ / file, dataset).info().dtype;
  }
};

TEST_F(ConvertSequences, FramesBecomeBytesAndCountsLoseNothing) {
  write_sequence(folder_ / "in" / "train", {.voxel = {8, 12}});
  write_sequence(folder_ / "in" / "val", {.name = "b", .chunked = true});
  const Finished finished = convert({"in", "--out", "out"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "2 files converted, 0 were done before, 0 could not be read: out\n");
  for (const char* file : {"train/a.hdf5", "val/b.hdf5"}) {
    const std::string in = std::string("in/") + file, out = std::string("out/") + file;
    for (const char* dataset : {"/blur", "/sharp", "/voxel"}) EXPECT_TRUE(sdk::same_type(type(out, dataset), sdk::u8));
    EXPECT_EQ(stored<float>(out, "/voxel"), stored<float>(in, "/voxel"));
    const auto exact = stored<float>(in, "/sharp");
    const auto bytes = stored<uint8_t>(out, "/sharp");
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], std::lround(255.0f * exact[i]));
    EXPECT_NE(stored<uint8_t>(out, "/blur"), bytes);
  }
  const auto before = open_spikes(folder_ / "in", "clip_length = 3"),
             after = open_spikes(folder_ / "out", "clip_length = 3");
  EXPECT_EQ(read_clip(*before, 1).at("voxel"), read_clip(*after, 1).at("voxel"));
  EXPECT_EQ(convert({"in", "--out", "out"}).out, "0 files converted, 2 were done before, 0 could not be read: out\n");
}

TEST_F(ConvertSequences, ValuesBetweenAndBeyondAreRounded) {
  SequenceSpec spec{.frames = 1};
  spec.edit = [](const std::string& dataset, uint64_t, std::vector<float>& values) {
    if (dataset == "blur")
      std::copy_n(std::array{-0.1f, 1.1f, 0.4999f / 255.0f, 0.5001f / 255.0f}.begin(), 4, values.begin());
  };
  write_sequence(folder_, spec);
  EXPECT_EQ(convert({"a.hdf5", "--out", "small.hdf5"}).exit_code, 0);
  const auto bytes = stored<uint8_t>("small.hdf5", "/blur");
  EXPECT_EQ((std::vector<uint8_t>{bytes.begin(), bytes.begin() + 4}), (std::vector<uint8_t>{0, 255, 0, 1}));
}

TEST_F(ConvertSequences, WhatIsNoCountIsRefused) {
  for (const float odd : {0.5f, 256.0f, -1.0f}) {
    SequenceSpec spec;
    spec.edit = [&](const std::string& dataset, uint64_t frame, std::vector<float>& values) {
      if (dataset == "voxel" && frame == 2) values[384 + 24 * 3 + 5] = odd;
    };
    write_sequence(folder_, spec);
    const Finished finished = convert({"a.hdf5", "--out", "small.hdf5"});
    EXPECT_EQ(finished.exit_code, 4);
    EXPECT_EQ(finished.err, "[spike_hdf5] a.hdf5: voxel[2, 1, 3, 5] is " + std::to_string(odd) +
                                "; only whole counts from 0 to 255 can be stored without loss: convert the counts, not "
                                "what was made of them, or leave the file as it is\n");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "small.hdf5"));
  }
}

TEST_F(ConvertSequences, OneBadSequenceDoesNotStopTheOthers) {
  write_sequence(folder_ / "in", {.name = "a", .has_voxel = false});
  write_sequence(folder_ / "in", {.name = "b"});
  const Finished finished = convert({"in", "--out", "out"});
  EXPECT_EQ(finished.exit_code, 4);
  EXPECT_EQ(finished.out, "1 files converted, 0 were done before, 1 could not be read: out\n");
  EXPECT_THAT(finished.err, testing::HasSubstr("[spike_hdf5] in/a.hdf5: it has no dataset 'voxel'"));
  EXPECT_EQ(convert({"in", "--out", "frames", "--set", "use_voxel=false"}).exit_code, 0);
}

TEST_F(ConvertSequences, TwoThatWouldBecomeOneFileAreRefused) {
  write_sequence(folder_ / "in", {});
  std::filesystem::rename(folder_ / "in/a.hdf5", folder_ / "in/a.h5");
  write_sequence(folder_ / "in", {});
  const Finished finished = convert({"in", "--out", "out"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err,
            "[data convert] in/a.h5 and in/a.hdf5 would both be written to out/a.hdf5; rename one of them\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(ConvertSequences, FramesAndStreamsBecomeOneFile) {
  const auto frames = folder_ / "in/GOPRO_Large/test/s", spikes = folder_ / "in/GOPRO_Large_spike_seq/test/s/spike";
  for (const char* name : {"000001", "000002"}) {
    const std::vector<uint8_t> pixels(3 * 16 * 16, static_cast<uint8_t>(name[5]));
    for (const char* kind : {"blur_gamma", "sharp"})
      write_bytes(frames / kind / (std::string(name) + ".png"), encode_png(pixels, {16, 16}));
    write_bytes(spikes / (std::string(name) + ".dat"), std::vector<std::byte>(56 * 8, std::byte{0xFF}));
  }
  spike_plugin();
  const std::vector<std::string> camera = {"--set", "spike_height=8", "--set", "spike_width=8"};
  std::vector<std::string> words = {"in", "--out", "out", "--set", "num_bins=7"};
  words.insert(words.end(), camera.begin(), camera.end());
  const Finished finished = convert(words);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(stored<uint8_t>("out/test/s.hdf5", "/blur")[0], '1');
  EXPECT_EQ(stored<uint8_t>("out/test/s.hdf5", "/voxel"), std::vector<uint8_t>(2 * 7 * 64, 8));
  const auto source = open_spikes(folder_ / "out", "clip_length = 2");
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{2, 7, 16, 16}));
}

TEST_F(ConvertSequences, StreamsWithOnePictureEach) {
  write_bytes(folder_ / "in/train/gt/s.png", encode_png(std::vector<uint8_t>(3 * 8 * 16, 7), {8, 16}));
  write_bytes(folder_ / "in/train/input/s.dat", std::vector<std::byte>(41 * 16, std::byte{0xFF}));
  spike_plugin();
  EXPECT_THAT(convert({"in", "--out", "out"}).err, testing::HasSubstr("set use_blur = false"));
  const Finished finished = convert({"in", "--out", "out", "--set", "num_bins=1", "--set", "use_blur=false"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(stored<uint8_t>("out/train/s.hdf5", "/sharp"), std::vector<uint8_t>(3 * 8 * 16, 7));
  EXPECT_EQ(stored<uint8_t>("out/train/s.hdf5", "/voxel"), std::vector<uint8_t>(8 * 16, 41));
  EXPECT_EQ(open_spikes(folder_ / "out", "clip_length = 1\nuse_blur = false")->fields().size(), 2u);
}

TEST_F(ConvertSequences, WordsThatDoNotSuit) {
  write_sequence(folder_, {});
  const auto problem = [&](std::vector<std::string> words) { return convert(std::move(words)).err; };
  EXPECT_THAT(problem({"a.hdf5", "--out", "b.hdf5", "--set", "bins=3"}), testing::HasSubstr("bins"));
  EXPECT_EQ(problem({"a.hdf5", "--out", "b.hdf5", "--deflate", "4"}),
            "[cli] --source writes the form that this datasource reads best; leave --chunk, --deflate, --shuffle and "
            "--contiguous out\n");
  EXPECT_EQ(problem({"a.hdf5", "--out", "a.hdf5"}),
            "[data convert] --out a.hdf5 is the file itself; the original is never overwritten\n");
  write_bytes(folder_ / "b.hdf5", {});
  EXPECT_EQ(
      problem({"a.hdf5", "--out", "b.hdf5"}),
      "[data convert] b.hdf5 is there already, and not from this conversion; remove it, or choose another --out\n");
  const auto without = [&](std::vector<std::string> words) {
    return headroom_program(std::move(words), {.folder = folder_, .environment = {}}).err;
  };
  EXPECT_EQ(without({"data", "convert", "a.hdf5", "--out", "c.hdf5", "--set", "num_bins=3"}),
            "[cli] --set sets keys of a datasource's conversion; name it with --source\n");
  EXPECT_EQ(
      without({"data", "convert", "a.hdf5", "--out", "c.hdf5", "--source", "emg_hdf5"}),
      "[data convert] datasource 'emg_hdf5' has no form of its own to convert to; leave out --source to change how "
      "HDF5 files are laid out\n");
}

}  // namespace
}  // namespace headroom
