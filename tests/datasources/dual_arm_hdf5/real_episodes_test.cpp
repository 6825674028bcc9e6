// Real and simulator recordings, where they lie beside the checkout.
#include "dual_arm_source.hpp"

namespace headroom {
namespace {

class RealEpisodes : public testing::Test {
 protected:
  static std::filesystem::path folder(const std::string& name) {
    return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/real/act" / name;
  }
};

TEST_F(RealEpisodes, SimulatorWithTwoCompressedCameras) {
  const auto path = folder("aloha_sim_transfer_cube");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no real episodes beside the checkout";
  const auto source = open_episodes(path, "train_ratio = 0.5\nsamples_per_episode = 0");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{2, 3, 120, 160}));
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{400, 14}));
  EXPECT_EQ(source->length(0), 400u);
  const DualArmSample sample = read_sample(*source, 150, 0, false, 1);
  EXPECT_EQ(std::ranges::count(sample.is_pad, 1), 150);
  for (const float value : sample.qpos) ASSERT_LT(std::abs(value), 20.0f);
  const auto [least, most] = std::ranges::minmax_element(sample.image);
  EXPECT_GT(*most - *least, 100);
}

TEST_F(RealEpisodes, UnequalEpisodesOfARobotWithOneCamera) {
  const auto path = folder("g1_pick_bottle_arms14");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no real episodes beside the checkout";
  const auto source = open_episodes(path, "train_ratio = 0.5");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{1, 3, 48, 64}));
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{260, 14}));
  EXPECT_EQ(source->fields()[1].channels[3].name, "kLeftElbow");
  for (const float value : read_sample(*source, 0, 3, true).qpos) ASSERT_LT(std::abs(value), 20.0f);
  EXPECT_EQ(std::ranges::count(deviations_of(*source, 2), 1e-2f), 2);  // of the left arm, which hardly moves
}

}  // namespace
}  // namespace headroom
