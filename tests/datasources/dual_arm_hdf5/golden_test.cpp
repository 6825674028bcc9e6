// The original's own dataset, where its golden cases lie beside the checkout: exactly its numbers.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dual_arm_hdf5/split.hpp"
#include "dual_arm_source.hpp"
#include "record/safetensors.hpp"

namespace headroom {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/golden/act_policy/h_dataset" / name;
}

constexpr const char* kNotThere = "there is no ../shared beside the source tree";

class GoldenEpisodes : public testing::TestWithParam<std::string> {};

TEST_P(GoldenEpisodes, SamplesAreTheOriginals) {
  if (!std::filesystem::exists(golden(GetParam()))) GTEST_SKIP() << kNotThere;
  const SafetensorsFile file(golden(GetParam() + "_expected.safetensors"));
  const auto source = open_episodes(golden(GetParam()), "train_ratio = 1.0");
  EXPECT_EQ(means_of(*source, 1), values<float>(file, "stats.qpos_mean"));
  EXPECT_EQ(deviations_of(*source, 1), values<float>(file, "stats.qpos_std"));
  EXPECT_EQ(means_of(*source, 2), values<float>(file, "stats.action_mean"));
  EXPECT_EQ(deviations_of(*source, 2), values<float>(file, "stats.action_std"));
  const std::vector<uint64_t> order = dual_arm_hdf5::numpy_permutation(1, 4);
  for (const auto& [episode, start] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 0}, {1, 1}, {2, 7}, {3, 11}}) {
    const auto index = static_cast<uint64_t>(std::ranges::find(order, episode) - order.begin());
    const DualArmSample sample = read_sample(*source, index, key_that_starts_at(start, 12), true);
    const std::string name = "ep" + std::to_string(episode) + ".ts" + std::to_string(start) + ".";
    EXPECT_EQ(sample.qpos, values<float>(file, name + "qpos")) << name;
    EXPECT_EQ(sample.action, values<float>(file, name + "action")) << name;
    EXPECT_EQ(sample.is_pad, values<uint8_t>(file, name + "is_pad")) << name;
    std::vector<float> image(sample.image.begin(), sample.image.end());
    for (float& value : image) value /= 255.0f;
    EXPECT_EQ(image, values<float>(file, name + "image")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(DualArm, GoldenEpisodes, testing::Values("sim", "real"));

TEST(GoldenDataset, SplitIsTheOriginals) {
  if (!std::filesystem::exists(golden("split_seed1.json"))) GTEST_SKIP() << kNotThere;
  std::ifstream stream(golden("split_seed1.json"));
  const auto splits = nlohmann::json::parse(stream);
  for (const auto& [count, expected] : splits.items()) {
    const auto split = dual_arm_hdf5::divide_episodes(std::stoull(count), 0.8, 1);
    EXPECT_EQ(split.train, expected["train"].get<std::vector<uint64_t>>()) << count;
    EXPECT_EQ(split.val, expected["val"].get<std::vector<uint64_t>>()) << count;
  }
}

// Byte for byte what OpenCV decodes.
TEST(GoldenDataset, FramesAreOpenCvs) {
  if (!std::filesystem::exists(golden("compressed"))) GTEST_SKIP() << kNotThere;
  const SafetensorsFile file(golden("compressed_expected.safetensors"));
  const auto source = open_episodes(golden("compressed"), "train_ratio = 1.0\nsamples_per_episode = 0");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{2, 3, 48, 64}));
  const std::vector<std::vector<uint8_t>> cameras = {values<uint8_t>(file, "decoded.cam_high"),
                                                     values<uint8_t>(file, "decoded.cam_left_wrist")};
  constexpr std::size_t pixels = 48 * 64;
  for (uint64_t step = 0; step < 12; ++step) {
    const DualArmSample sample = read_sample(*source, step);
    std::size_t different = 0;
    for (std::size_t camera = 0; camera < 2; ++camera) {
      for (std::size_t i = 0; i < 3 * pixels; ++i) {
        different +=
            sample.image[camera * 3 * pixels + i % 3 * pixels + i / 3] != cameras[camera][step * 3 * pixels + i];
      }
    }
    EXPECT_EQ(different, 0u) << "step " << step;
  }
}

}  // namespace
}  // namespace headroom
