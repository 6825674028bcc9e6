// PNG frames and raw spikes in the two public layouts.
#include <cmath>

#include "png_writer.hpp"
#include "spike_source.hpp"

namespace headroom {
namespace {

constexpr Size kFrame{16, 32}, kSpikes{8, 16};

class SpikeFolders : public TemporaryFolder {
 protected:
  struct Paths {
    std::filesystem::path blur, sharp, spikes;
  };
  Paths spk(const std::string& split, const std::string& sequence) const {
    const auto frames = folder_ / "GOPRO_Large" / split / sequence;
    return {frames / "blur_gamma", frames / "sharp", folder_ / "GOPRO_Large_spike_seq" / split / sequence / "spike"};
  }
  Paths s_sdm(const std::string& split, const std::string& sequence) const {
    const auto root = folder_ / "GOPRO" / split;
    return {root / "blur_data" / sequence, root / "sharp_data" / sequence, root / "spike_data" / sequence};
  }
  static std::string name(uint64_t frame) { return "00000" + std::to_string(frame); }

  // Spike frame s of frame t fires in the pixels whose (s + x + 2 y + t) % 3 is 0.
  static bool fires(uint64_t t, uint64_t s, uint64_t y, uint64_t x) { return (s + x + 2 * y + t) % 3 == 0; }
  static std::vector<std::byte> spikes_of(uint64_t t, uint64_t steps) {
    std::vector<std::byte> stream(steps * kSpikes.pixels() / 8);
    for (uint64_t i = 0; i < steps * kSpikes.pixels(); ++i) {
      const uint64_t row = i / kSpikes.width % kSpikes.height;
      if (fires(t, i / kSpikes.pixels(), kSpikes.height - 1 - row, i % kSpikes.width))
        stream[i / 8] |= std::byte{1} << i % 8;
    }
    return stream;
  }
  static void write(const Paths& paths, uint64_t frames, uint64_t steps = 56) {
    spike_plugin();
    for (uint64_t t = 0; t < frames; ++t) {
      for (const bool sharp : {false, true}) {
        std::vector<uint8_t> pixels;
        for (uint64_t i = 0; i < 3 * kFrame.pixels(); ++i)
          pixels.push_back(level_of(sharp, t, i / 3 / kFrame.width, i / 3 % kFrame.width, i % 3));
        write_bytes((sharp ? paths.sharp : paths.blur) / (name(t) + ".png"), encode_png(pixels, kFrame));
      }
      write_bytes(paths.spikes / (name(t) + ".dat"), spikes_of(t, steps));
    }
  }
  static constexpr const char* kOptions = "clip_length = 2\nspike_height = 8\nspike_width = 16\n";

  static void expect_clip(const Sample& sample, uint64_t first) {
    const auto blur = values<uint8_t>(sample, "blur"), sharp = values<uint8_t>(sample, "sharp");
    for (uint64_t i = 0; i < blur.size(); ++i) {
      const uint64_t t = first + i / (3 * kFrame.pixels()), c = i / kFrame.pixels() % 3, at = i % kFrame.pixels();
      ASSERT_EQ(blur[i], level_of(false, t, at / kFrame.width, at % kFrame.width, c));
      ASSERT_EQ(sharp[i], level_of(true, t, at / kFrame.width, at % kFrame.width, c));
    }
  }
  std::string sentence(Exit expected, const std::string& more = "") const {
    return sentence_of(folder_, expected, [&] { read_clip(*open_spikes(folder_, kOptions + more), 0); });
  }
};

// "0000010.png" comes before "000002.png" in byte order.
TEST_F(SpikeFolders, FramesAreInTheOrderOfTheirNumbers) {
  write(spk("train", "GOPR0372_07_00"), 12);
  const auto source = open_spikes(folder_, kOptions);
  ASSERT_EQ(source->length(0), 11u);
  for (const uint64_t first : {0u, 1u, 8u, 9u, 10u}) expect_clip(read_clip(*source, first), first);
}

TEST_F(SpikeFolders, BothPublicLayouts) {
  write(spk("train", "GOPR0372_07_00"), 3);
  write(spk("train", "GOPR0374_11_00"), 2, 88);
  write(spk("test", "GOPR0384_11_00"), 2);
  write_bytes(folder_ / "GOPRO_Large" / "train" / "note.txt", {});
  for (const char* layout : {"", "layout = \"spk_gopro\""}) {
    const auto source = open_spikes(folder_, std::string(kOptions) + layout);
    EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "test"}));
    EXPECT_EQ(source->length(0), 3u);
    EXPECT_EQ(source->groups(0)[1].name, "GOPR0374_11_00");
    EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{2, 3, 16, 32}));
    EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{2, 32, 16, 32}));
    EXPECT_EQ(source->files().size(), 7u * 3u);
    expect_clip(read_clip(*source, 1), 1);
  }
  std::filesystem::remove_all(folder_ / "GOPRO_Large");
  write(s_sdm("train", "GOPR0372_07_00"), 3);
  for (const auto& path : {folder_, folder_ / "GOPRO"}) {
    const auto source = open_spikes(path, kOptions);
    EXPECT_EQ(source->splits(), (std::vector<std::string>{"train"}));
    expect_clip(read_clip(*source, 1), 1);
  }
}

TEST_F(SpikeFolders, StreamsBecomeVoxels) {
  write(spk("train", "a"), 2);
  const auto source = open_spikes(folder_, std::string(kOptions) + "num_bins = 8\nvoxel_transform = \"none\"");
  const auto voxel = values<float>(read_clip(*source, 0), "voxel");
  const auto count = [](uint64_t t, uint64_t k, uint64_t y, uint64_t x) {
    int fired = 0;
    for (uint64_t s = 7 * k; s < 7 * (k + 1); ++s) fired += fires(t, s, y, x) ? 1 : 0;
    return float(fired);
  };
  for (uint64_t t = 0; t < 2; ++t) {
    for (uint64_t k = 0; k < 8; ++k) {
      const float* plane = voxel.data() + (t * 8 + k) * kFrame.pixels();
      EXPECT_EQ(plane[0], count(t, k, 0, 0));
      EXPECT_EQ(plane[kFrame.pixels() - 1], count(t, k, 7, 15));
      // Row 5 lies at 2.25, column 8 at 3.75 of the spike camera's.
      const float upper = 0.25f * count(t, k, 2, 3) + 0.75f * count(t, k, 2, 4);
      const float lower = 0.25f * count(t, k, 3, 3) + 0.75f * count(t, k, 3, 4);
      EXPECT_NEAR(plane[5 * 32 + 8], 0.75f * upper + 0.25f * lower, 1e-6);
    }
  }
}

TEST_F(SpikeFolders, OfALongStreamTheMiddle) {
  write(spk("train", "a"), 2, 88);
  const std::string options = std::string(kOptions) + "num_bins = 4\nvoxel_transform = \"none\"\n";
  const auto counts = [&](const std::string& more) {
    return values<float>(read_clip(*open_spikes(folder_, options + more), 0), "voxel");
  };
  EXPECT_EQ(counts("spike_frames = 88"), counts(""));
  const auto middle = counts("spike_frames = 56");
  float fired = 0.0f;
  for (uint64_t s = 16; s < 30; ++s) fired += fires(0, s, 0, 0) ? 1.0f : 0.0f;
  EXPECT_EQ(middle[0], fired);
  EXPECT_NE(middle, counts(""));
  EXPECT_NE(counts("flip_vertical = false"), counts(""));
}

TEST_F(SpikeFolders, PartsAreThoseOfTheWhole) {
  write(spk("train", "a"), 2);
  const Sample whole = read_clip(*open_spikes(folder_, kOptions), 0);
  const Sample part = read_clip(*open_spikes(folder_, std::string(kOptions) + "crop_size = 8"), 0);
  const Box middle{4, 12, {8, 8}};
  EXPECT_EQ(values<uint8_t>(part, "blur"), cut(values<uint8_t>(whole, "blur"), kFrame, middle));
  EXPECT_EQ(values<uint8_t>(part, "sharp"), cut(values<uint8_t>(whole, "sharp"), kFrame, middle));
  EXPECT_EQ(values<float>(part, "voxel"), cut(values<float>(whole, "voxel"), kFrame, middle));
}

TEST_F(SpikeFolders, TruncatedStream) {
  write(spk("train", "a"), 3);
  const auto file = spk("train", "a").spikes / "000001.dat";
  std::filesystem::resize_file(file, 56 * 16 - 3);
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/GOPRO_Large_spike_seq/train/a/spike/000001.dat: its 893 bytes are no whole number of spike "
      "frames of 8x16 (16 bytes each); set spike_height and spike_width to the camera's, or copy the file again");
  EXPECT_EQ(sentence(Exit::data, "use_voxel = false"), "");
  std::filesystem::resize_file(file, 0);
  EXPECT_THAT(sentence(Exit::data), testing::HasSubstr("its 0 bytes are no whole number"));
}

// The guides read 88 frames of 360x640 as 10 of 396x640 bytes.
TEST_F(SpikeFolders, SizesThatAreNotTheCameras) {
  write(spk("train", "a"), 2, 7);
  EXPECT_EQ(
      sentence_of(folder_, Exit::bad_input,
                  [&] { open_spikes(folder_, "clip_length = 2\nspike_height = 8\nspike_width = 20"); }),
      "[spike_hdf5] spike_width = 20 is no multiple of 8, so that rows of a stream would not begin with a byte; set "
      "it to the camera's");
  EXPECT_EQ(sentence_of(folder_, Exit::bad_input,
                        [&] { open_spikes(folder_, "clip_length = 2\nspike_height = 7\nspike_width = 16"); }),
            "[spike_hdf5] spike frames of 7x16 (spike_height, spike_width) do not divide the frames of 16x32 in "
            "DIR/GOPRO_Large/train/a/blur_gamma/000000.png; set them to the camera's");
  EXPECT_THAT(sentence_of(folder_, Exit::data,
                          [&] { open_spikes(folder_, "clip_length = 2\nspike_height = 16\nspike_width = 16"); }),
              testing::HasSubstr("its 112 bytes are no whole number of spike frames of 16x16 (32 bytes each)"));
}

TEST_F(SpikeFolders, MoreSpikesThanABinHolds) {
  write(spk("train", "a"), 2, 600);
  EXPECT_EQ(
      sentence(Exit::bad_input, "num_bins = 2"),
      "[spike_hdf5] DIR/GOPRO_Large_spike_seq/train/a/spike/000000.dat has 600 spike frames for num_bins = 2; a bin "
      "holds 255 at most: raise num_bins or lower spike_frames");
  EXPECT_EQ(sentence(Exit::bad_input, "num_bins = 2\nspike_frames = 510"), "");
}

TEST_F(SpikeFolders, FramesWithoutTheirLike) {
  write(spk("train", "a"), 3);
  const Paths paths = spk("train", "a");
  std::filesystem::remove(paths.spikes / "000001.dat");
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/GOPRO_Large/train/a/blur_gamma/000001.png: it has no "
            "DIR/GOPRO_Large_spike_seq/train/a/spike/000001.dat beside it; add it, or take the frame out");
  write_bytes(paths.spikes / "000001.dat", spikes_of(1, 56));
  std::filesystem::remove(paths.sharp / "000002.png");
  EXPECT_THAT(sentence(Exit::data), testing::HasSubstr("it has no DIR/GOPRO_Large/train/a/sharp/000002.png beside it"));
  std::filesystem::remove(paths.blur / "000002.png");
  EXPECT_THAT(
      sentence(Exit::data),
      testing::HasSubstr("spike/000002.dat: it has no DIR/GOPRO_Large/train/a/blur_gamma/000002.png beside it"));
  for (const auto& entry : std::filesystem::directory_iterator(paths.blur)) std::filesystem::remove(entry);
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/GOPRO_Large/train/a/blur_gamma: no frame (*.png) lies there; take the sequence out");
}

TEST_F(SpikeFolders, DamagedFrames) {
  write(spk("train", "a"), 2);
  const auto file = spk("train", "a").sharp / "000001.png";
  write_bytes(file, encode_png(std::vector<uint8_t>(3 * 16 * 16), {16, 16}));
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/GOPRO_Large/train/a/sharp/000001.png is 16x16, the sequence's other frames are 16x32; copy "
      "it again or take the sequence out");
  write_bytes(file, encode_png(std::vector<uint8_t>(3 * kFrame.pixels()), kFrame));
  std::filesystem::resize_file(file, 50);
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/GOPRO_Large/train/a/sharp/000001.png is no whole PNG (it ends early); copy it again or take "
      "the sequence out");
}

TEST_F(SpikeFolders, LayoutThatIsNotRecognised) {
  std::filesystem::create_directory(folder_ / "GOPRO");
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR is none of the layouts known: sequences (*.hdf5) in it or in its train/, val/ and test/ "
            "(hdf5), GOPRO_Large/ and GOPRO_Large_spike_seq/ (spk_gopro), GOPRO/ with train/blur_data/ (s_sdm), "
            "streams (*.dat) with a picture each, or input/ and gt/ (pairs); check path, or say which with layout");
  EXPECT_EQ(sentence(Exit::data, "layout = \"s_sdm\""), "[spike_hdf5] no train/, val/ or test/ lies in DIR/GOPRO");
  std::filesystem::create_directories(folder_ / "GOPRO" / "train" / "blur_data");
  EXPECT_EQ(sentence(Exit::data), "[spike_hdf5] no sequence lies in DIR/GOPRO/train; put some there");
}

}  // namespace
}  // namespace headroom
