#include <cmath>
#include <limits>

#include "spike_source.hpp"

namespace headroom {
namespace {

class BadSequence : public TemporaryFolder {
 protected:
  // Of opening, and reading the first clip of, what lies in the folder.
  std::string sentence(Exit expected, const std::string& options = "clip_length = 2") const {
    return sentence_of(folder_, expected, [&] { read_clip(*open_spikes(folder_, options), 0); });
  }
};

TEST_F(BadSequence, NothingThere) {
  EXPECT_EQ(sentence(Exit::data, "layout = \"hdf5\""),
            "[spike_hdf5] no sequence (*.hdf5 or *.h5) lies in DIR; put some there");
  std::filesystem::create_directory(folder_ / "val");
  EXPECT_EQ(sentence(Exit::data), "[spike_hdf5] no sequence (*.hdf5 or *.h5) lies in DIR/val; put some there");
}

TEST_F(BadSequence, NoVoxel) {
  write_sequence(folder_, {.has_voxel = false});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/a.hdf5: it has no dataset 'voxel', only blur and sharp; add it, or leave it out with "
            "use_voxel = false");
  EXPECT_EQ(sentence(Exit::data, "clip_length = 2\nuse_voxel = false"), "");
}

TEST_F(BadSequence, NoSharpFrames) {
  write_sequence(folder_, {.has_sharp = false});
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/a.hdf5: it has no dataset 'sharp', only blur and voxel; blur, sharp and voxel are needed");
}

TEST_F(BadSequence, OtherNumberOfBins) {
  write_sequence(folder_, {.bins = 3});
  EXPECT_EQ(
      sentence(Exit::data, "clip_length = 2\nnum_bins = 32"),
      "[spike_hdf5] DIR/a.hdf5: voxel has 3 bins; num_bins = 32 is asked for: set it to what the files have, or to "
      "0");
  write_sequence(folder_, {.name = "b", .bins = 4});
  EXPECT_EQ(sentence(Exit::data), "[spike_hdf5] DIR/b.hdf5: voxel has 4 bins, 3 in DIR/a.hdf5; all must have as many");
}

TEST_F(BadSequence, OddSizes) {
  write_sequence(folder_, {.height = 18, .width = 24});
  EXPECT_EQ(sentence(Exit::bad_input),
            "[spike_hdf5] DIR/a.hdf5 has frames of 18x24, whose height and width must be multiples of 8; set crop_size "
            "to one, to cut such a part out");
  EXPECT_EQ(sentence(Exit::data, "clip_length = 2\ncrop_size = 16"), "");
  EXPECT_EQ(sentence(Exit::bad_input, "clip_length = 2\ncrop_size = 12"),
            "[spike_hdf5] crop_size = 12 is no multiple of 8; set it to 16, or to 0 for whole frames");
}

TEST_F(BadSequence, VoxelThatDoesNotDivideTheFrame) {
  write_sequence(folder_, {.voxel = {8, 10}});
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/a.hdf5: voxel has planes of 8x10, which do not divide the frames of 16x24; they must lie on "
      "the same view: write the file again");
}

TEST_F(BadSequence, CropLargerThanTheFrame) {
  write_sequence(folder_, {});
  EXPECT_EQ(sentence(Exit::bad_input, "clip_length = 2\ncrop_size = 24"),
            "[spike_hdf5] DIR/a.hdf5 has frames of 16x24; crop_size = 24 is larger: lower it, or set it to 0 for whole "
            "frames");
}

TEST_F(BadSequence, ClipLongerThanTheSequence) {
  write_sequence(folder_, {.frames = 5});
  EXPECT_EQ(sentence(Exit::bad_input, "clip_length = 6"),
            "[spike_hdf5] DIR/a.hdf5 has 5 frames; clip_length = 6 needs more: lower it, or take the sequence out");
  EXPECT_EQ(sentence(Exit::data, "clip_length = 5"), "");
}

TEST_F(BadSequence, DatasetsThatDoNotFitEachOther) {
  write_sequence(folder_, {.sharp = {16, 16}});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/a.hdf5: sharp is [5, 16, 16, 3], blur is [5, 16, 24, 3]; both must have the same frames: "
            "write the file again");
  write_sequence(folder_, {.sharp_frames = 4});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/a.hdf5: sharp is [4, 16, 24, 3], blur is [5, 16, 24, 3]; both must have the same frames: "
            "write the file again");
  write_sequence(folder_, {.voxel_frames = 4});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/a.hdf5: voxel has 4 frames, blur has 5; each frame needs its own: write the file again");
  write_sequence(folder_, {.float_sharp = false});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/a.hdf5: sharp holds uint8, blur holds float32; both must have one type: write the file "
            "again");
}

TEST_F(BadSequence, WrongTypes) {
  write_sequence(folder_, {.voxel_type = sdk::i32});
  EXPECT_EQ(sentence(Exit::data),
            "[spike_hdf5] DIR/a.hdf5: voxel holds int32; float32 or uint8 counts are needed: write the file again");
}

TEST_F(BadSequence, NoFrames) {
  write_sequence(folder_, {.frames = 0});
  EXPECT_EQ(sentence(Exit::data), "[spike_hdf5] DIR/a.hdf5: blur has no frames; take the file out");
}

TEST_F(BadSequence, SequencesThatDiffer) {
  write_sequence(folder_, {});
  write_sequence(folder_, {.name = "b", .height = 24});
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/b.hdf5: its frames are 24x24, 16x24 in DIR/a.hdf5; all must have one size: set crop_size to "
      "cut parts of one size out");
  EXPECT_EQ(sentence(Exit::data, "clip_length = 2\ncrop_size = 16"), "");
  write_sequence(folder_, {.name = "b", .float_images = false});
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/b.hdf5: its frames are uint8, float32 in DIR/a.hdf5; all must have one type: `headroom data "
      "convert` makes them uint8");
}

TEST_F(BadSequence, FrameThatIsNoNumber) {
  for (const bool chunked : {false, true}) {
    SequenceSpec spec{.chunked = chunked};
    spec.edit = [](const std::string& dataset, uint64_t frame, std::vector<float>& values) {
      if (dataset == "sharp" && frame == 1) values[3 * (24 * 7 + 5) + 2] = std::numeric_limits<float>::quiet_NaN();
    };
    write_sequence(folder_, spec);
    EXPECT_EQ(sentence(Exit::data),
              "[spike_hdf5] DIR/a.hdf5: sharp[1, 7, 5, 2] is no finite number; mend the file or take it out");
    EXPECT_EQ(sentence(Exit::data, "clip_length = 2\ncrop_size = 8\nrandom_crop = false"), "");  // from 4 and 8
  }
}

TEST_F(BadSequence, FramesUpTo255InFloat) {
  SequenceSpec spec;
  spec.edit = [](const std::string& dataset, uint64_t, std::vector<float>& values) {
    if (dataset == "blur") values[3 * (24 * 9 + 11)] = 37.0f;
  };
  write_sequence(folder_, spec);
  EXPECT_EQ(sentence(Exit::data, "clip_length = 2\ncrop_size = 8"), sentence(Exit::data));
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/a.hdf5: blur[0, 9, 11, 0] is 37.000000; float32 frames must lie in [0, 1]: divide them by "
      "255, or store uint8");
}

TEST_F(BadSequence, VoxelThatIsNoCount) {
  SequenceSpec spec;
  spec.edit = [](const std::string& dataset, uint64_t frame, std::vector<float>& values) {
    if (dataset == "voxel" && frame == 0) values[384 + 24 * 9 + 11] = std::numeric_limits<float>::infinity();
  };
  write_sequence(folder_, spec);
  EXPECT_EQ(sentence(Exit::data, "clip_length = 2\ncrop_size = 8"), sentence(Exit::data));
  EXPECT_EQ(
      sentence(Exit::data),
      "[spike_hdf5] DIR/a.hdf5: voxel[0, 1, 9, 11] is no count, or no finite number; mend the file or take it out");
}

TEST_F(BadSequence, FileThatChangedSinceItWasOpened) {
  write_sequence(folder_, {});
  const auto source = open_spikes(folder_, "clip_length = 2");
  write_sequence(folder_, {.frames = 4});
  EXPECT_THAT(sentence_of(folder_, Exit::data, [&] { read_clip(*source, 0); }),
              testing::HasSubstr("has changed since"));
}

}  // namespace
}  // namespace headroom
