// Raw spike streams with one picture each, and no blurred frames.
#include "data/slots.hpp"
#include "plugins/recording.hpp"
#include "png_writer.hpp"
#include "spike_source.hpp"

namespace headroom {
namespace {

constexpr Size kPicture{16, 32};

class SpikePairs : public TemporaryFolder {
 protected:
  // Spike frame s of stream t fires in the pixels whose (s * s + x + 2 y + t) % 5 is 0.
  static bool fires(uint64_t t, uint64_t s, uint64_t y, uint64_t x) { return (s * s + x + 2 * y + t) % 5 == 0; }
  static void write_stream(const std::filesystem::path& file, uint64_t t, uint64_t steps, const Size& size = kPicture) {
    std::vector<std::byte> stream(steps * size.pixels() / 8);
    for (uint64_t i = 0; i < steps * size.pixels(); ++i) {
      const uint64_t row = i / size.width % size.height;
      if (fires(t, i / size.pixels(), size.height - 1 - row, i % size.width)) stream[i / 8] |= std::byte{1} << i % 8;
    }
    spike_plugin();
    write_bytes(file, stream);
  }
  static void write_picture(const std::filesystem::path& file, uint64_t t, const Size& size = kPicture) {
    std::vector<uint8_t> pixels;
    for (uint64_t i = 0; i < 3 * size.pixels(); ++i)
      pixels.push_back(level_of(true, t, i / 3 / size.width, i / 3 % size.width, i % 3));
    write_bytes(file, encode_png(pixels, size));
  }
  // In `folder`/input and `folder`/gt.
  static void write(const std::filesystem::path& folder, const std::string& name, uint64_t t, uint64_t steps = 41) {
    write_stream(folder / "input" / (name + ".dat"), t, steps);
    write_picture(folder / "gt" / (name + ".png"), t);
  }
  // Spikes of steps [first, first + count).
  static float fired(uint64_t t, uint64_t first, uint64_t count, uint64_t y, uint64_t x) {
    float spikes = 0.0f;
    for (uint64_t s = first; s < first + count; ++s) spikes += fires(t, s, y, x) ? 1.0f : 0.0f;
    return spikes;
  }
  static constexpr const char* kOptions = "clip_length = 1\nuse_blur = false\nvoxel_transform = \"none\"\n";

  static void expect_pair(const Sample& sample, uint64_t t, uint64_t first, uint64_t count) {
    const auto sharp = values<uint8_t>(sample, "sharp");
    const auto voxel = values<float>(sample, "voxel");
    ASSERT_EQ(voxel.size(), kPicture.pixels());
    for (uint64_t at = 0; at < kPicture.pixels(); ++at) {
      const uint64_t y = at / kPicture.width, x = at % kPicture.width;
      for (uint64_t c = 0; c < 3; ++c) ASSERT_EQ(sharp[c * kPicture.pixels() + at], level_of(true, t, y, x, c));
      ASSERT_EQ(voxel[at], fired(t, first, count, y, x)) << y << ", " << x;
    }
  }
  // Of a recording beside a source without blurred frames.
  static std::vector<std::byte> recorded_voxel(const std::shared_ptr<const Source>& source,
                                               const std::filesystem::path& file, bool has_sharp) {
    const auto recording = Recording::open(spike_plugin(), source, file);
    EXPECT_EQ(is_missing(recording->fields()[0]), !has_sharp);
    EXPECT_EQ(recording->fields()[1].shape, source->fields()[1].shape);
    Slot slot(recording->fields(), 1, {false, true});
    const auto fields = slot.tensors(0, 1);
    recording->read(std::vector<uint64_t>{0}, fields);
    const auto* first = static_cast<const std::byte*>(fields[1].data);
    return {first, first + recording->fields()[1].bytes()};
  }
  std::string sentence(Exit expected, const std::string& more = "", const std::string& options = kOptions) const {
    return sentence_of(folder_, expected, [&] { read_clip(*open_spikes(folder_, options + more), 0); });
  }
};

TEST_F(SpikePairs, EachStreamIsASequence) {
  for (const char* split : {"train", "val"}) {
    write(folder_ / split, "0002", 2);
    write(folder_ / split, "0002-b", 3, 50);
  }
  for (const char* layout : {"", "layout = \"pairs\""}) {
    const auto source = open_spikes(folder_, std::string(kOptions) + "num_bins = 1\n" + layout);
    EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
    EXPECT_EQ(source->length(1), 2u);
    EXPECT_EQ(source->groups(1)[0].name, "0002-b");
    EXPECT_EQ(source->groups(1)[1].name, "0002");
    ASSERT_EQ(source->fields().size(), 2u);
    EXPECT_EQ(source->fields()[0].name, "sharp");
    EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{1, 3, 16, 32}));
    EXPECT_EQ(source->fields()[1].name, "voxel");
    EXPECT_EQ(source->files().size(), 8u);
    expect_pair(read_clip(*source, 0, 0, false, 1), 3, 0, 50);
    expect_pair(read_clip(*source, 1, 0, false, 1), 2, 0, 41);
  }
}

TEST_F(SpikePairs, BothInOneFolderOrOneStreamAlone) {
  write_stream(folder_ / "a.dat", 1, 41);
  write_picture(folder_ / "a.png", 1);
  write_stream(folder_ / "b.dat", 2, 41);
  write_picture(folder_ / "b.png", 2);
  const auto source = open_spikes(folder_, std::string(kOptions) + "num_bins = 1");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"all"}));
  expect_pair(read_clip(*source, 1), 2, 0, 41);
  const auto alone = open_spikes(folder_ / "a.dat", std::string(kOptions) + "num_bins = 1");
  EXPECT_EQ(alone->length(0), 1u);
  expect_pair(read_clip(*alone, 0), 1, 0, 41);
}

TEST_F(SpikePairs, ThePictureIsOfTheMiddleOrOfTheSpikeFrameNamed) {
  write(folder_, "a", 1);
  const auto pair = [&](const std::string& more) {
    return read_clip(*open_spikes(folder_, std::string(kOptions) + "num_bins = 1\n" + more), 0);
  };
  expect_pair(pair("spike_frames = 21"), 1, 10, 21);
  expect_pair(pair("spike_frames = 21\nspike_middle = 20"), 1, 10, 21);
  expect_pair(pair("spike_frames = 21\nspike_middle = 10"), 1, 0, 21);
  expect_pair(pair("spike_frames = 21\nspike_middle = 30"), 1, 20, 21);
}

TEST_F(SpikePairs, CutsAreThoseOfTheWhole) {
  write(folder_, "a", 1);
  const Sample whole = read_clip(*open_spikes(folder_, kOptions), 0);
  const Sample part = read_clip(*open_spikes(folder_, std::string(kOptions) + "crop_size = 8"), 0);
  const Box middle{4, 12, {8, 8}};
  EXPECT_EQ(values<uint8_t>(part, "sharp"), cut(values<uint8_t>(whole, "sharp"), kPicture, middle));
  EXPECT_EQ(values<float>(part, "voxel"), cut(values<float>(whole, "voxel"), kPicture, middle));
}

TEST_F(SpikePairs, OptionsThatDoNotSuit) {
  write(folder_, "a", 1);
  EXPECT_EQ(sentence(Exit::bad_input, "", "clip_length = 1"),
            "[spike_hdf5] spike streams with one picture each (layout pairs) have no blurred frames; set use_blur = "
            "false");
  EXPECT_EQ(sentence(Exit::bad_input, "", "use_blur = false"),
            "[spike_hdf5] DIR/input/a.dat has 1 frame; clip_length = 6 needs more: lower it, or take the sequence out");
  EXPECT_EQ(sentence(Exit::bad_input, "use_voxel = false"),
            "[spike_hdf5] use_blur = false and use_voxel = false leave the sharp frames alone; set one of them to "
            "true");
  EXPECT_EQ(sentence(Exit::bad_input, "spike_middle = 20"),
            "[spike_hdf5] spike_middle = 20 names the middle of the spike frames that are read; say with spike_frames "
            "how many they are");
}

TEST_F(SpikePairs, StreamsAndPicturesWithoutTheirLike) {
  write(folder_, "a", 1);
  write_stream(folder_ / "input" / "a-b.dat", 2, 41);
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/input/a-b.dat: it has no DIR/gt/a-b.png beside it; add it, or take the frame out");
  std::filesystem::remove(folder_ / "input" / "a-b.dat");
  write_picture(folder_ / "gt" / "b.png", 2);
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/gt/b.png: it has no DIR/input/b.dat beside it; add it, or take the frame out");
  std::filesystem::remove(folder_ / "input" / "a.dat");
  EXPECT_EQ(sentence(Exit::data), "[spike_hdf5] no spike stream (*.dat) lies in DIR/input; put some there");
}

TEST_F(SpikePairs, PicturesOfAnotherSize) {
  write(folder_, "a", 1);
  write_picture(folder_ / "gt" / "a.png", 1, {16, 24});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/input/a.dat: its 2624 bytes are no whole number of spike frames of 16x24 (48 bytes "
            "each); set spike_height and spike_width to the camera's, or copy the file again");
  EXPECT_EQ(sentence(Exit::bad_input, "spike_width = 32"),
            "[spike_hdf5] spike frames of 16x32 (spike_height, spike_width) do not divide the frames of 16x24 in "
            "DIR/gt/a.png; set them to the camera's");
  write_picture(folder_ / "gt" / "a.png", 1, {16, 20});
  EXPECT_EQ(sentence(Exit::bad_input),
            "[spike_hdf5] the frames of DIR/gt/a.png are 20 pixels wide, no multiple of 8 as a row of a spike stream "
            "is; set spike_width to the camera's");
}

TEST_F(SpikePairs, StreamTooShort) {
  write(folder_, "a", 1, 30);
  EXPECT_EQ(sentence(Exit::bad_input, "spike_frames = 41"),
            "[spike_hdf5] DIR/input/a.dat has 30 spike frames; spike_frames = 41 needs more: lower it, or take the "
            "stream out");
  EXPECT_EQ(sentence(Exit::bad_input, "spike_frames = 21\nspike_middle = 9"),
            "[spike_hdf5] DIR/input/a.dat has 30 spike frames; spike_frames = 21 around spike_middle = 9 reach beyond "
            "them: lower spike_frames, or set spike_middle from 10 to 19");
  EXPECT_THAT(sentence(Exit::bad_input, "spike_frames = 21\nspike_middle = 20"), testing::HasSubstr("from 10 to 19"));
  EXPECT_EQ(sentence(Exit::bad_input, "spike_frames = 21\nspike_middle = 19"), "");
}

// What people have: a stream and no picture of it. Pictures are twice as large as what the run's camera sees.
TEST_F(SpikePairs, ARecordedStreamNeedsNoPicture) {
  write_stream(folder_ / "run" / "input" / "a.dat", 1, 41, {8, 16});
  write_picture(folder_ / "run" / "gt" / "a.png", 1);
  write_stream(folder_ / "new.dat", 1, 41, {8, 16});
  const auto source =
      open_spikes(folder_ / "run", std::string(kOptions) + "num_bins = 2\nspike_height = 8\nspike_width = 16");
  EXPECT_EQ(recorded_voxel(source, folder_ / "new.dat", false), read_clip(*source, 0).at("voxel"));
  EXPECT_EQ(recorded_voxel(source, folder_ / "run" / "input" / "a.dat", true), read_clip(*source, 0).at("voxel"));
}

// Files of the other layouts may lack them too.
TEST_F(SpikePairs, Hdf5FilesWithoutBlurredFrames) {
  const SequenceSpec spec{.frames = 3, .has_blur = false};
  write_sequence(folder_, spec);
  EXPECT_EQ(sentence(Exit::data, "", "clip_length = 2"),
            "[spike_hdf5] DIR/a.hdf5: it has no dataset 'blur', only sharp and voxel; add it, or leave it out with "
            "use_blur = false");
  const auto without = open_spikes(folder_, "clip_length = 2\nuse_blur = false");
  ASSERT_EQ(without->fields().size(), 2u);
  const Sample clip = read_clip(*without, 1);
  write_sequence(folder_, {.frames = 3});
  const Sample same = read_clip(*open_spikes(folder_, "clip_length = 2"), 1);
  EXPECT_EQ(clip.at("sharp"), same.at("sharp"));
  EXPECT_EQ(clip.at("voxel"), same.at("voxel"));

  SequenceSpec voxels{.name = "new", .frames = 3, .voxel = {8, 12}, .has_blur = false};
  write_sequence(folder_ / "run", voxels);
  const auto run = open_spikes(folder_ / "run", "clip_length = 2\nuse_blur = false");
  voxels.has_sharp = false;
  EXPECT_EQ(recorded_voxel(run, write_sequence(folder_, voxels), false), read_clip(*run, 0).at("voxel"));
}

}  // namespace
}  // namespace headroom
