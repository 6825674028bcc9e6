// One sequence beside those of a source, frame by frame: headroom.predict/1.
#include "data/slots.hpp"
#include "plugins/recording.hpp"
#include "spike_source.hpp"

namespace headroom {
namespace {

class RecordedClips : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write_sequence(folder_ / "run", run_);
    source_ = open_spikes(folder_ / "run", "clip_length = 3\ncrop_size = 8");
  }
  std::unique_ptr<Recording> open(const std::filesystem::path& path) const {
    return Recording::open(spike_plugin(), source_, path);
  }
  // The clip that begins at `step`, by field.
  static Sample read(Recording& recording, uint64_t step) {
    std::vector<bool> wanted;
    for (const Field& field : recording.fields()) wanted.push_back(!is_missing(field));
    Slot slot(recording.fields(), 1, wanted);
    const auto fields = slot.tensors(0, 1);
    recording.read(std::vector<uint64_t>{step}, fields);
    Sample sample;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!wanted[i]) continue;
      const auto* first = static_cast<const std::byte*>(fields[i].data);
      sample[recording.fields()[i].name].assign(first, first + recording.fields()[i].bytes());
    }
    return sample;
  }
  // Of frames as large as the first `frames` of it.
  static std::vector<std::byte> frame(const Sample& clip, const std::string& field, size_t place) {
    const std::vector<std::byte>& all = clip.at(field);
    const auto size = static_cast<std::ptrdiff_t>(all.size() / 3), begin = static_cast<std::ptrdiff_t>(place) * size;
    return {all.begin() + begin, all.begin() + begin + size};
  }

  const SequenceSpec run_{.frames = 5, .height = 16, .width = 24, .bins = 2, .voxel = {8, 12}};
  std::shared_ptr<const Source> source_;
};

TEST_F(RecordedClips, WholeFramesWhateverTheRunCutsOut) {
  const auto recording = open(folder_ / "run/a.hdf5");
  ASSERT_EQ(recording->steps(), 5u);
  EXPECT_EQ(recording->fields()[0].shape, (std::vector<int64_t>{3, 3, 16, 24}));
  EXPECT_EQ(recording->fields()[2].shape, (std::vector<int64_t>{3, 2, 16, 24}));
  const auto whole = open_spikes(folder_ / "run", "clip_length = 3");
  for (const uint64_t step : {0, 2}) EXPECT_EQ(read(*recording, step), read_clip(*whole, step)) << step;
}

TEST_F(RecordedClips, TheEndIsMirrored) {
  const auto recording = open(folder_ / "run/a.hdf5");
  const Sample last = read(*recording, 4), before = read(*recording, 2);
  for (const char* field : {"blur", "sharp", "voxel"}) {
    EXPECT_EQ(frame(last, field, 0), frame(before, field, 2)) << field;
    EXPECT_EQ(frame(last, field, 1), frame(before, field, 2)) << field;
    EXPECT_EQ(frame(last, field, 2), frame(before, field, 1)) << field;
    EXPECT_NE(frame(last, field, 2), frame(last, field, 1)) << field;
  }
}

// What people have: frames that are blurred, and nothing sharp; of another size than in training.
TEST_F(RecordedClips, SharpFramesMayBeMissing) {
  SequenceSpec spec{.name = "new", .frames = 2, .height = 32, .width = 16, .bins = 2};
  spec.has_sharp = false;
  const auto recording = open(write_sequence(folder_ / "new", spec));
  EXPECT_EQ(recording->steps(), 2u);
  EXPECT_TRUE(is_missing(recording->fields()[1]));
  const Sample clip = read(*recording, 0);
  EXPECT_EQ(clip.count("sharp"), 0u);
  EXPECT_EQ(clip.at("blur").size(), 3u * 3 * 32 * 16 * sizeof(float));
  EXPECT_EQ(frame(clip, "blur", 2), frame(clip, "blur", 1)) << "shorter than a clip: mirrored";
}

TEST_F(RecordedClips, WhatDoesNotSuitTheRunIsRefused) {
  const auto refusal = [&](const std::filesystem::path& path) {
    return sentence_of(folder_, Exit::data, [&] { open(path); });
  };
  EXPECT_EQ(refusal(write_sequence(folder_ / "new", {.name = "bins", .bins = 4})),
            "[spike_hdf5] DIR/new/bins.hdf5: voxel has 4 bins, 2 in DIR/run/a.hdf5; all must have as many");
  SequenceSpec bytes{.name = "bytes", .bins = 2};
  bytes.float_images = false;
  EXPECT_THAT(refusal(write_sequence(folder_ / "new", bytes)), testing::HasSubstr("its frames are uint8, float32 in"));
  EXPECT_EQ(refusal(folder_ / "new"),
            "[spike_hdf5] DIR/new: it is no sequence; give an *.hdf5 file, a spike stream (*.dat) of the layout pairs, "
            "or a folder GOPRO_Large/<split>/<sequence> or <split>/blur_data/<sequence>");
}

}  // namespace
}  // namespace headroom
