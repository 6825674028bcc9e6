// What is wrong with episodes themselves, each with its sentence. Files that are no HDF5 at all are the host's
// (tests/runner/arrays).
#include <limits>

#include "dual_arm_source.hpp"

namespace headroom {
namespace {

class BadEpisode : public TemporaryFolder {
 protected:
  // What opening, and reading all of the first split, says; "DIR" for the folder.
  std::string sentence(Exit code, const std::string& options = "train_ratio = 1.0\nsamples_per_episode = 0") const {
    try {
      const auto source = open_episodes(folder_, options);
      for (uint64_t i = 0; i < source->length(0); ++i) read_sample(*source, i);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), code) << error.what();
      std::string text = error.what();
      for (std::size_t at; (at = text.find(folder_.string())) != std::string::npos;)
        text.replace(at, folder_.string().size(), "DIR");
      return text;
    }
    return "";
  }
};

TEST_F(BadEpisode, FolderWithoutEpisodes) {
  EXPECT_EQ(sentence(Exit::data), "[dual_arm_hdf5] no episode (episode_0.hdf5, episode_1.hdf5, ...) lies in DIR");
}

TEST_F(BadEpisode, GapInTheNumbers) {
  for (const uint64_t n : {0u, 1u, 3u}) write_episode(folder_, {.number = n});
  EXPECT_EQ(sentence(Exit::bad_input),
            "[dual_arm_hdf5] DIR has no episode_2.hdf5: its 3 episodes must be numbered from 0 without gaps");
  EXPECT_EQ(sentence(Exit::bad_input, "num_episodes = 5"),
            "[dual_arm_hdf5] DIR has no episode_2.hdf5: num_episodes = 5 asks for episode_0.hdf5 to episode_4.hdf5");
}

TEST_F(BadEpisode, OnlyNumbersCount) {
  for (const uint64_t n : {0u, 1u}) write_episode(folder_, {.number = n});
  for (const char* name : {"episode_0_backup.hdf5", "episode_.hdf5", "episode_01.hdf5", "episode_1 (copy).hdf5"})
    std::filesystem::copy_file(folder_ / "episode_0.hdf5", folder_ / name);
  EXPECT_EQ(sentence(Exit::bad_input), "");
}

TEST_F(BadEpisode, NoneToTrainOn) {
  write_episode(folder_, {});
  EXPECT_EQ(sentence(Exit::bad_input, "train_ratio = 0.8"),
            "[dual_arm_hdf5] train_ratio = 0.8 leaves none of 1 episodes to train on; raise it or add episodes");
}

TEST_F(BadEpisode, MissingCamera) {
  write_episode(folder_, {});
  EXPECT_EQ(sentence(Exit::data, "train_ratio = 1.0\ncameras = [\"top\", \"front\"]"),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /observations/images has no camera 'front'; it has left and top");
  write_episode(folder_, {.number = 1, .cameras = {"top"}});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_1.hdf5: /observations/images has no camera 'left'; it has top");
}

TEST_F(BadEpisode, NoCameraAtAll) {
  write_episode(folder_, {.has_images = false});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /observations/images has no camera; at least one is needed");
}

TEST_F(BadEpisode, ShortAction) {
  write_episode(folder_, {.action_steps = 9});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /action has 9 steps, /observations/qpos has 12; record the episode "
            "again or take it out");
}

TEST_F(BadEpisode, NoAction) {
  write_episode(folder_, {.has_action = false});
  EXPECT_THAT(sentence(Exit::data),
              testing::AllOf(testing::HasSubstr("DIR/episode_0.hdf5"), testing::HasSubstr("/action")));
}

TEST_F(BadEpisode, ShortCamera) {
  write_episode(folder_, {.camera_steps = 11});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /observations/images/left has 11 steps, /observations/qpos has 12; "
            "record the episode again or take it out");
}

TEST_F(BadEpisode, WrongTypes) {
  write_episode(folder_, {.joint_type = sdk::i32});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /observations/qpos holds int32; float32 or float64 is needed");
  write_episode(folder_, {.image_type = sdk::f32});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /observations/images/left holds float32; uint8 is needed");
}

TEST_F(BadEpisode, FramesOfAnotherKind) {
  write_episode(folder_, {.image_shape = {6, 8, 4}});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /observations/images/left is [12, 6, 8, 4]; [steps, height, width, 3] "
            "of pixels or [steps, bytes] of JPEG frames is needed");
}

TEST_F(BadEpisode, FramesOfAnotherSize) {
  write_episode(folder_, {});
  write_episode(folder_, {.number = 1, .height = 7});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_1.hdf5: /observations/images/left has frames of 7x8, others have 6x8; all "
            "cameras must have one size, so choose some with cameras = [...]");
  write_episode(folder_, {.number = 1, .height = 7, .jpeg = true});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_1.hdf5: /observations/images/left: the frame of step 0 is 7x8, other frames "
            "are 6x8; record the episode again or take it out");
}

TEST_F(BadEpisode, AnotherRobot) {
  write_episode(folder_, {});
  write_episode(folder_, {.number = 1, .joints = 16});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_1.hdf5: /observations/qpos has 16 joints, 14 in DIR/episode_0.hdf5; keep "
            "episodes of one robot in a folder");
}

TEST_F(BadEpisode, NoSteps) {
  write_episode(folder_, {});
  write_episode(folder_, {.number = 1, .steps = 0});
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_1.hdf5: /observations/qpos has no steps; take the episode out");
}

TEST_F(BadEpisode, JointThatIsNoNumber) {
  EpisodeSpec spec;
  spec.edit = [](uint64_t step, std::vector<double>&, std::vector<double>& action) {
    if (step == 5) action[3] = std::numeric_limits<double>::quiet_NaN();
  };
  write_episode(folder_, spec);
  EXPECT_EQ(sentence(Exit::data),
            "[dual_arm_hdf5] DIR/episode_0.hdf5: /action[5, 3] is no finite number; mend the episode or take it out");
}

TEST_F(BadEpisode, TruncatedJpeg) {
  EpisodeSpec spec{.jpeg = true};
  spec.edit_jpeg = [](uint64_t step, std::vector<uint8_t>& row) {
    if (step == 7) std::fill(row.begin() + 600, row.end(), uint8_t{0});
  };
  write_episode(folder_, spec);
  EXPECT_THAT(sentence(Exit::data),
              testing::MatchesRegex("\\[dual_arm_hdf5\\] DIR/episode_0.hdf5: /observations/images/left: the frame of "
                                    "step 7 is no whole JPEG \\(.*\\); record the episode again or take it out"));
  spec.edit_jpeg = [](uint64_t, std::vector<uint8_t>& row) { std::ranges::fill(row, uint8_t{0}); };
  write_episode(folder_, spec);
  EXPECT_THAT(sentence(Exit::data), testing::HasSubstr("the frame of step 0 is no whole JPEG (Not a JPEG file"));
}

}  // namespace
}  // namespace headroom
