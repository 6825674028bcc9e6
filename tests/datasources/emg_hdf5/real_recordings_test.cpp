// Real recordings, where they lie beside the checkout.
#include <cmath>

#include "emg_source.hpp"

namespace headroom {
namespace {

class RealRecording : public testing::Test {
 protected:
  static std::filesystem::path file(const std::string& name) {
    return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/real/emg" / name;
  }
};

TEST_F(RealRecording, EightChannelsWithAngles) {
  const auto path = file("duque_1734923885_8ch_angles.hdf5");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no real recordings beside the checkout";
  const auto source = open_emg(path, "window_size = 250\nstride = 25");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{250, 8}));
  EXPECT_EQ(source->fields()[0].unit, "uV");
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{250, 5}));
  EXPECT_EQ(source->fields()[1].unit, "rad");
  EXPECT_EQ(source->fields()[0].sample_rate_hz, 125.0);
  EXPECT_EQ(source->length(0), (4881u - 2 - 250) / 25 + 1);
  const EmgSample sample = read_sample(*source, 100);
  for (const float angle : sample.angles) ASSERT_TRUE(angle > 1.0f && angle < 3.2f) << angle;
  EXPECT_THAT(sample.valid, testing::Each(1));
}

TEST_F(RealRecording, SixteenChannelsWithIkFailures) {
  const auto path = file("duque_1734156561_16ch_curl.hdf5");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no real recordings beside the checkout";
  const auto all = open_emg(path, "window_size = 250\nskip_ik_failures = false"),
             valid = open_emg(path, "window_size = 250");
  EXPECT_EQ(all->fields()[0].shape, (std::vector<int64_t>{250, 16}));
  EXPECT_EQ(all->fields()[1].unit, "fraction");
  EXPECT_EQ(all->length(0), 18736u - 250 + 1);
  EXPECT_LT(valid->length(0), all->length(0));
  const uint64_t last = valid->length(0) - 1;
  for (const uint64_t i : {uint64_t{0}, last / 2, last}) EXPECT_THAT(read_sample(*valid, i).valid, testing::Each(1));
}

}  // namespace
}  // namespace headroom
