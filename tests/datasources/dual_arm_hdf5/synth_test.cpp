#include <cmath>
#include <fstream>

#include "dual_arm_source.hpp"

namespace headroom {
namespace {

class SynthEpisodes : public TemporaryFolder {
 protected:
  std::filesystem::path make(const std::string& name, const std::string& options) const {
    std::filesystem::create_directory(folder_ / name);
    const toml::table table = toml::parse(options);
    const hr_synth* synth = dual_arm_plugin().synth();
    EXPECT_NE(synth, nullptr);
    const OptionTable spec = to_option_table(synth->options);
    const NativeOptions native(spec, check_options(spec, &table, "data.synth", "data source 'dual_arm_hdf5'"));
    hr_error error{sizeof(hr_error), HR_OK, {}};
    EXPECT_EQ(synth->write(host(), native.values(), (folder_ / name).c_str(), &error), HR_OK) << error.message;
    return folder_ / name;
  }
  static std::string bytes(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static constexpr const char* kSmall = "episodes = 2\nsteps = 20\nheight = 24\nwidth = 32\n";
};

TEST_F(SynthEpisodes, SameOptionsGiveSameBytesAndAnotherSeedOthers) {
  make("a", kSmall);
  make("b", kSmall);
  make("c", std::string(kSmall) + "seed = 1");
  for (const char* file : {"episode_0.hdf5", "episode_1.hdf5"}) {
    EXPECT_EQ(bytes(folder_ / "a" / file), bytes(folder_ / "b" / file));
    EXPECT_NE(bytes(folder_ / "a" / file), bytes(folder_ / "c" / file));
  }
}

TEST_F(SynthEpisodes, OpenAsAsked) {
  const auto source = open_episodes(make("a", std::string(kSmall) + "cameras = 4"), "train_ratio = 0.5");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{4, 3, 24, 32}));
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{20, 14}));
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
  EXPECT_EQ(open_episodes(make("b", "episodes = 1\nsteps = 1\ncameras = 1\nheight = 8\nwidth = 8"), "train_ratio = 1.0")
                ->length(0),
            1u);
}

// Where the red block is in a frame of the camera from above, across and down, in pixels.
std::pair<double, double> block_in(const DualArmSample& sample, std::size_t width, std::size_t pixels) {
  double weight = 0.0, across = 0.0, down = 0.0;
  for (std::size_t i = 0; i < pixels; ++i) {
    const double red =
        static_cast<double>(sample.image[i]) - 0.5 * (sample.image[pixels + i] + sample.image[2 * pixels + i]);
    if (red < 80.0) continue;
    weight += red;
    across += red * static_cast<double>(i % width);
    down += red * static_cast<double>(i / width);
  }
  return {across / weight, down / weight};
}

// What a policy needs: before anything moves, the picture tells where the left arm will reach, and nothing else does.
TEST_F(SynthEpisodes, TheFirstFrameTellsWhereTheArmReaches) {
  const auto source = open_episodes(make("a", "episodes = 40\nsteps = 21\nheight = 60\nwidth = 80\ncameras = 1"),
                                    "train_ratio = 1.0\nsamples_per_episode = 0");
  constexpr std::size_t grasp = 5, joints = 14, width = 80, pixels = 60 * width;
  const Channel first = source->fields()[2].channels[0];
  double most_qpos = 0.0, worst = 0.0, spread = 0.0;
  for (std::size_t episode = 0; episode < 40; ++episode) {
    const DualArmSample sample = read_sample(*source, episode * 21);
    const auto [across, down] = block_in(sample, width, pixels);
    // The camera from above: 80 pixels for 1.2 m around x = 0, y = 0.3; the left arm stands at x = -0.5, y = 0.3.
    const double metre = 80.0 / 1.2, x = (across - 39.5) / metre + 0.5, y = (29.5 - down) / metre;
    const double waist = double{sample.action[grasp * joints]} * first.std + first.mean;
    worst = std::max(worst, std::abs(waist - std::atan2(y, x)));
    spread = std::max(spread, std::abs(waist));
    most_qpos = std::max(most_qpos, std::abs(double{sample.qpos[0] - read_sample(*source, 0).qpos[0]}));
  }
  EXPECT_LT(worst, 0.08);
  EXPECT_GT(spread, 0.4);
  EXPECT_LT(most_qpos, 0.1);  // in standard deviations
}

}  // namespace
}  // namespace headroom
