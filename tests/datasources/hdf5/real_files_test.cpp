// Real files, where they lie beside the checkout.
#include <sstream>
#include <unistd.h>

#include "config/experiment.hpp"
#include "data/synth.hpp"
#include "hdf5_source.hpp"

namespace headroom {
namespace {

// A name that is free, and the folder of that name removed at the end.
struct TemporaryData {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("headroom-example-" + std::to_string(getpid()));
  ~TemporaryData() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

std::string toml_text(const toml::table& table) {
  std::ostringstream text;
  text << table;
  return text.str();
}

class RealFiles : public testing::Test {
 protected:
  static std::filesystem::path real(const std::string& name) {
    return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/real" / name;
  }
};

TEST_F(RealFiles, EpisodesOfAnArm) {
  const auto folder = real("act/aloha_sim_transfer_cube");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no real episodes beside the checkout";
  const auto source = open_hdf5(folder, R"(
sample = "one_per_group"
fields = [
  { name = "top", dataset = "/observations/images/top", rows = "row", axes = ["height", "width", "channel"] },
  { name = "angle", dataset = "/observations/images/angle", rows = "row" },
  { name = "qpos", dataset = "/observations/qpos", rows = "row", normalize = true },
  { name = "action", dataset = "/action", length = 100, pad = "zeros", pad_mask = "is_pad" },
])");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{120, 160, 3}));
  EXPECT_EQ(source->fields()[3].shape, (std::vector<int64_t>{100, 14}));
  ASSERT_EQ(source->length(0), 2u);
  const size_t t = 199, frame = 120 * 160 * 3;  // the middle of 400
  for (uint64_t episode = 0; episode < 2; ++episode) {
    const auto file = folder / ("episode_" + std::to_string(episode) + ".hdf5");
    const Sample sample = read_sample(*source, episode);
    for (const std::string camera : {"top", "angle"}) {
      const auto all = library_values<uint8_t>(file, "/observations/images/" + camera, H5T_NATIVE_UINT8);
      const auto got = values<uint8_t>(sample, camera);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin() + static_cast<std::ptrdiff_t>(t * frame))) << camera;
    }
    const auto action = library_values<double>(file, "/action", H5T_NATIVE_DOUBLE);
    const auto got = values<float>(sample, "action");
    for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], static_cast<float>(action[t * 14 + k]));
    EXPECT_THAT(values<uint8_t>(sample, "is_pad"), testing::Each(0));
  }
}

TEST_F(RealFiles, FramesAndVoxelsOfSpikes) {
  const auto file = real("spike/realvideo_simspike/seq_g1.hdf5");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no real frames beside the checkout";
  const auto source = open_hdf5(file, R"(
crop = [64, 96]
fields = [
  { name = "sharp", dataset = "sharp", rows = "row", axes = ["height", "width", "colour"] },
  { name = "voxel", dataset = "voxel", rows = "row", axes = ["bin", "height", "width"] },
])");
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{32, 64, 96}));
  const auto sharp = library_values<float>(file, "sharp", H5T_NATIVE_FLOAT);
  const Sample sample = read_sample(*source, 1);
  const auto got = values<float>(sample, "sharp");
  for (size_t y = 0; y < 64; ++y) {
    for (size_t k = 0; k < 96 * 3; ++k)
      ASSERT_EQ(got[y * 288 + k], sharp[((240 + (240 - 64) / 2 + y) * 320 + (320 - 96) / 2) * 3 + k]);
  }
}

TEST_F(RealFiles, WindowsOfARecording) {
  const auto file = real("emg/duque_1734923885_8ch_angles.hdf5");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no real recordings beside the checkout";
  const auto source = open_hdf5(file, R"(
window_size = 250
stride = 25
fields = [
  { name = "emg", dataset = "/emg2pose/timeseries", member = "emg", normalize = true },
  { name = "rate", dataset = "/emg2pose", attribute = "sample_rate" },
])");
  EXPECT_EQ(source->length(0), (4881u - 250) / 25 + 1);
  const auto emg = library_values<float>(file, "/emg2pose/timeseries", H5T_NATIVE_FLOAT, "emg", 8);
  const auto got = values<float>(read_sample(*source, 100), "emg");
  ASSERT_EQ(got.size(), 2000u);
  for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], emg[2500 * 8 + k]);
  EXPECT_EQ(values<float>(read_sample(*source, 0), "rate")[0], 125.0f);
}

// The experiment file that the documentation shows, on recordings as quick_demo.toml makes them.
TEST(Example, OpensTheRecordingsOfQuickDemo) {
  Experiment example = load_experiment(HEADROOM_SOURCE_DIR "/experiments/hdf5_example.toml");
  ASSERT_EQ(example.data.source, "hdf5");
  const TemporaryData data;
  const Library emg = Library::load(std::filesystem::path(HEADROOM_PLUGIN_DIR) / "emg_hdf5.so");
  const Experiment demo = load_experiment(
      HEADROOM_SOURCE_DIR "/experiments/quick_demo.toml",
      {{"data.options.path", data.path.string()}, {"data.synth.sessions", "4"}, {"data.synth.seconds", "1.0"}});
  const OptionTable table = to_option_table(emg.datasource()->options);
  const OptionValues values = check_options(table, &demo.data_options, "data.options", "data source 'emg_hdf5'");
  hdf5_plugin();
  const auto written = synthesise_missing(emg, check_synth(emg, demo), table, values);
  ASSERT_TRUE(written.has_value());
  toml::table options = example.data_options;
  options.erase("path");
  const auto source = open_hdf5(*written, toml_text(options));
  EXPECT_EQ(source->groups(0).size(), 4u);
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{500, 16}));
  const Sample sample = read_sample(*source, 3);
  EXPECT_EQ(sample.at("joint_angles").size(), 500u * 20 * sizeof(float));
}

}  // namespace
}  // namespace headroom
