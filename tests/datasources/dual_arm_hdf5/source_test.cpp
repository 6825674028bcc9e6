#include <cmath>
#include <set>

#include "../../runner/arrays/h5_files.hpp"
#include "dual_arm_source.hpp"

namespace headroom {
namespace {

class DualArm : public TemporaryFolder {
 protected:
  // Values as the source gives them, brought back to what was written.
  static double action_at(const Source& source, const DualArmSample& sample, uint64_t step, uint64_t joint) {
    const auto& channels = source.fields()[2].channels;
    return double{sample.action[step * channels.size() + joint]} * channels[joint].std + channels[joint].mean;
  }
  static double qpos_at(const Source& source, const DualArmSample& sample, uint64_t joint) {
    const Channel& channel = source.fields()[1].channels[joint];
    return double{sample.qpos[joint]} * channel.std + channel.mean;
  }
};

TEST_F(DualArm, FieldsTellShapes) {
  for (uint64_t n = 0; n < 3; ++n) write_episode(folder_, {.number = n, .steps = 10 + n, .joints = 6});
  const auto source = open_episodes(folder_);
  ASSERT_EQ(source->fields().size(), 4u);
  const auto shape = [&](std::size_t field) { return source->fields()[field].shape; };
  EXPECT_EQ(shape(0), (std::vector<int64_t>{2, 3, 6, 8}));
  EXPECT_EQ(shape(1), (std::vector<int64_t>{6}));
  EXPECT_EQ(shape(2), (std::vector<int64_t>{12, 6}));
  EXPECT_EQ(shape(3), (std::vector<int64_t>{12}));
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
  EXPECT_EQ(source->length(0), 2u);
  EXPECT_EQ(source->length(1), 1u);
  EXPECT_EQ(source->groups(0)[1].name, "episode_2");  // numpy's permutation of 3 from seed 1 begins with 0, 2
}

TEST_F(DualArm, ChannelsTellNamesAndUnits) {
  write_episode(folder_, {});
  const auto source = open_episodes(folder_, "train_ratio = 1.0");
  for (const std::size_t field : {1u, 2u}) {
    const auto& channels = source->fields()[field].channels;
    ASSERT_EQ(channels.size(), 14u);
    EXPECT_EQ(channels[0].name, "left_waist");
    EXPECT_EQ(channels[0].unit, "rad");
    EXPECT_EQ(channels[13].name, "right_gripper");
    EXPECT_EQ(channels[13].unit, "opening");
    EXPECT_NEAR(channels[13].mean, 5.63 + (field == 2 ? 0.5 : 0.0), 1e-5);
    EXPECT_NEAR(channels[13].std, std::sqrt(13.0), 1e-5);  // of 0 to 11, unbiased
  }
  std::filesystem::create_directory(folder_ / "six");
  write_episode(folder_ / "six", {.joints = 6});
  EXPECT_EQ(open_episodes(folder_ / "six", "train_ratio = 1.0")->fields()[1].channels[0].name, "");
}

// As h5py writes a list of names: more of them than hr_attribute holds.
TEST_F(DualArm, JointsHaveTheNamesAndUnitsOfTheFile) {
  const std::string long_name(300, 'j');
  const std::vector<const char*> names = {"hip", "knee", long_name.c_str(), long_name.c_str(), "toe", "tail"};
  const std::vector<const char*> units = {"rad", "rad", "deg", "deg", "mm", "mm"};
  {
    const std::string episode = write_episode(folder_, {.joints = names.size()}).string();
    const Hdf5Lock lock;
    const Handle file(H5Fopen(episode.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)), type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), H5T_VARIABLE);
    const hsize_t count = names.size();
    const Handle space(H5Screate_simple(1, &count, nullptr));
    for (const auto& [name, list] : {std::pair("joint_names", &names), std::pair("joint_units", &units)}) {
      const Handle attribute(H5Acreate2(file.get(), name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_GE(H5Awrite(attribute.get(), type.get(), list->data()), 0);
    }
  }
  const auto source = open_episodes(folder_, "train_ratio = 1.0");
  const auto& channels = source->fields()[1].channels;
  ASSERT_EQ(channels.size(), names.size());
  EXPECT_EQ(channels[1].name, "knee");
  EXPECT_EQ(channels[3].name, long_name.substr(0, channels[3].name.size()));
  EXPECT_EQ(channels[5].name, "tail");
  EXPECT_EQ(channels[5].unit, "mm");
}

// A sample that starts at step 4 of an episode of 9 among episodes of up to 12.
TEST_F(DualArm, SimulatedActionsStartAtTheObservation) {
  write_episode(folder_, {.number = 0, .steps = 9});
  write_episode(folder_, {.number = 1, .steps = 12});
  const auto source = open_episodes(folder_, "train_ratio = 1.0\nsamples_per_episode = 0");
  ASSERT_EQ(source->length(0), 21u);
  const DualArmSample sample = read_sample(*source, 4);
  for (uint64_t j = 0; j < 14; ++j) {
    EXPECT_NEAR(qpos_at(*source, sample, j), 4.0 + 0.01 * double(j), 1e-5);
    for (uint64_t t = 0; t < 5; ++t)
      EXPECT_NEAR(action_at(*source, sample, t, j), 4.5 + double(t) + 0.01 * double(j), 1e-5);
    for (uint64_t t = 5; t < 12; ++t)
      EXPECT_EQ(sample.action[t * 14 + j], -means_of(*source, 2)[j] / deviations_of(*source, 2)[j]);
  }
  EXPECT_EQ(sample.is_pad, (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1}));
  for (uint64_t camera = 0; camera < 2; ++camera) {
    for (std::size_t i = 0; i < 3 * 48; ++i)
      ASSERT_EQ(sample.image[camera * 144 + i], level_of({}, camera, 4, i / 48)) << camera << " " << i;
  }
}

TEST_F(DualArm, RealActionsStartAStepEarlier) {
  write_episode(folder_, {.simulated = false});
  write_episode(folder_, {.number = 1, .tell_sim = false});
  const auto source = open_episodes(folder_, "train_ratio = 1.0\nsamples_per_episode = 0");
  for (const uint64_t episode : {uint64_t{0}, uint64_t{1}}) {
    const double first = 10.0 * double(source->groups(0)[episode].name == "episode_1") + 0.5;
    const DualArmSample at_start = read_sample(*source, 12 * episode), later = read_sample(*source, 12 * episode + 5);
    EXPECT_NEAR(action_at(*source, at_start, 0, 0), first, 1e-5);
    EXPECT_EQ(std::ranges::count(at_start.is_pad, 1), 0);
    EXPECT_NEAR(action_at(*source, later, 0, 0), first + 4.0, 1e-5);
    EXPECT_EQ(std::ranges::count(later.is_pad, 1), 4);
  }
}

TEST_F(DualArm, TrainingStartsAreDrawnFromTheKey) {
  write_episode(folder_, {});
  const auto source = open_episodes(folder_, "train_ratio = 1.0");
  std::set<int> starts;
  for (uint64_t key = 0; key < 400; ++key)
    starts.insert(static_cast<int>(std::ranges::count(read_sample(*source, 0, key, true).is_pad, 1)));
  EXPECT_EQ(starts.size(), 12u);
  const std::vector<uint64_t> keys = {7, 8, 9, 7};
  const auto together = read_samples(*source, 0, {0, 0, 0, 0}, keys, true);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(together[i], read_sample(*source, 0, keys[i], true));
  EXPECT_EQ(together[0], together[3]);
}

TEST_F(DualArm, ValidationStartsAreFixedAndSpread) {
  write_episode(folder_, {.steps = 100});
  const auto source = open_episodes(folder_, "train_ratio = 1.0\nsamples_per_episode = 10");
  ASSERT_EQ(source->length(0), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    const DualArmSample sample = read_sample(*source, i, 1);
    EXPECT_EQ(sample, read_sample(*source, i, 2));
    EXPECT_EQ(static_cast<uint64_t>(std::ranges::count(sample.is_pad, 1)) / 10, i);
  }
}

TEST_F(DualArm, DoublesAreReadAsFloats) {
  for (uint64_t n = 0; n < 2; ++n) {
    write_episode(folder_, {.number = n});
    std::filesystem::create_directory(folder_ / "wide");
    write_episode(folder_ / "wide", {.number = n, .joint_type = sdk::f64});
  }
  const auto narrow = open_episodes(folder_), wide = open_episodes(folder_ / "wide");
  EXPECT_EQ(read_sample(*narrow, 0, 5, true), read_sample(*wide, 0, 5, true));
}

TEST_F(DualArm, CamerasAsAsked) {
  write_episode(folder_, {.cameras = {"c", "a", "a_depth", "b"}});
  EXPECT_EQ(open_episodes(folder_, "train_ratio = 1.0")->fields()[0].shape[0], 3);
  const auto source = open_episodes(folder_, "train_ratio = 1.0\ncameras = [\"c\", \"b\"]\nsamples_per_episode = 0");
  const DualArmSample sample = read_sample(*source, 2);
  EXPECT_EQ(sample.image[0], level_of({}, 0, 2, 0));
  EXPECT_EQ(sample.image[144], level_of({}, 3, 2, 0));
}

TEST_F(DualArm, JpegFramesAreDecoded) {
  write_episode(folder_, {.jpeg = true});
  const auto source = open_episodes(folder_, "train_ratio = 1.0\nsamples_per_episode = 0");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{2, 3, 6, 8}));
  const DualArmSample sample = read_sample(*source, 3);
  for (uint64_t camera = 0; camera < 2; ++camera) {
    for (uint64_t c = 0; c < 3; ++c) {
      const int value = sample.image[camera * 144 + c * 48 + 20];
      EXPECT_NEAR(value, level_of({}, camera, 3, c), 6) << camera << " " << c;
    }
  }
}

TEST_F(DualArm, OnlyTheFirstEpisodesCount) {
  for (uint64_t n = 0; n < 5; ++n) write_episode(folder_, {.number = n});
  const auto all = open_episodes(folder_), three = open_episodes(folder_, "num_episodes = 3\ntrain_ratio = 0.9");
  EXPECT_EQ(all->length(0), 4u);
  EXPECT_EQ(three->length(0), 2u);
  EXPECT_EQ(three->length(1), 1u);
  EXPECT_NEAR(means_of(*three, 1)[0], 15.5, 1e-5);
  EXPECT_NEAR(means_of(*all, 1)[0], 25.5, 1e-5);
  EXPECT_NE(open_episodes(folder_, "split_seed = 2")->groups(1)[0].name, all->groups(1)[0].name);
}

TEST_F(DualArm, OneEpisodeByItself) {
  const auto file = write_episode(folder_, {});
  const auto source = open_episodes(file, "samples_per_episode = 0");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"all"}));
  EXPECT_EQ(source->length(0), 12u);
}

// More episodes than a reader keeps open, read back and forth.
TEST_F(DualArm, ManyEpisodesTakeTurns) {
  for (uint64_t n = 0; n < 70; ++n)
    write_episode(folder_, {.number = n, .steps = 2, .height = 2, .width = 2, .cameras = {"top"}});
  const auto source = open_episodes(folder_, "train_ratio = 1.0\nsamples_per_episode = 0");
  std::vector<uint64_t> index;
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < source->length(0); ++i) index.push_back((i * 37) % source->length(0));
  }
  const auto samples = read_samples(*source, 0, index, index, false);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::string name = source->groups(0)[index[i] / 2].name;
    const uint64_t number = std::stoull(name.substr(8));
    ASSERT_NEAR(qpos_at(*source, samples[i], 0), double(10 * number + index[i] % 2), 1e-3);
    ASSERT_EQ(samples[i].image[0], level_of({.number = number}, 0, index[i] % 2, 0));
  }
}

}  // namespace
}  // namespace headroom
