// A real video with simulated spikes, where it lies beside the checkout.
#include <cmath>

#include "png_writer.hpp"
#include "spike_hdf5/spikes.hpp"
#include "spike_source.hpp"

namespace headroom {
namespace {

class RealSequence : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    if (!std::filesystem::exists(real_ / "seq_g1.hdf5")) GTEST_SKIP() << "no real sequence beside the checkout";
    spike_plugin();
  }
  template <class T>
  std::vector<T> stored(const char* dataset, uint64_t frame, std::size_t values) const {
    std::vector<T> result(values);
    sdk::Array(sdk::Host(host()), real_ / "seq_g1.hdf5", dataset)
        .read_rows(frame, 1, std::array{sdk::target(result.data())});
    return result;
  }
  const std::filesystem::path real_ =
      std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared/real/spike/realvideo_simspike";
  static constexpr std::size_t kPixels = 240 * 320;
};

TEST_F(RealSequence, ClipsAreWhatTheFileHolds) {
  const auto source = open_spikes(real_, "clip_length = 3\nvoxel_transform = \"none\"");
  EXPECT_EQ(source->length(0), 2u);
  EXPECT_EQ(source->fields()[2].shape, (std::vector<int64_t>{3, 32, 240, 320}));
  const Sample sample = read_clip(*source, 1);
  for (const char* name : {"blur", "sharp"}) {
    const auto planes = values<float>(sample, name), pixels = stored<float>(name, 2, 3 * kPixels);
    for (std::size_t i = 0; i < kPixels; ++i) {
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(planes[(3 + c) * kPixels + i], pixels[3 * i + c]);
    }
  }
  const auto voxel = values<float>(sample, "voxel");
  EXPECT_TRUE(std::ranges::equal(std::span(voxel).subspan(32 * kPixels, 32 * kPixels),
                                 stored<float>("voxel", 2, 32 * kPixels)));
}

// Blurred frames are as far from the sharp ones as the set's README says.
TEST_F(RealSequence, IsBlurred) {
  const Sample sample = read_clip(*open_spikes(real_, "clip_length = 4\nuse_voxel = false"), 0);
  const auto blur = values<float>(sample, "blur"), sharp = values<float>(sample, "sharp");
  const double told[] = {26.74, 26.07, 25.85, 26.15};
  for (std::size_t t = 0; t < 4; ++t) {
    double squares = 0.0;
    for (std::size_t i = t * 3 * kPixels; i < (t + 1) * 3 * kPixels; ++i)
      squares += std::pow(double(blur[i]) - double(sharp[i]), 2.0);
    EXPECT_NEAR(10.0 * std::log10(3 * kPixels / squares), told[t], 0.01);
  }
}

// The .dat file holds the spikes of frame 1, upright.
TEST_F(RealSequence, TheStreamIsTheVoxelOfItsFrame) {
  const auto file = real_ / "frame_1_256x240x320.dat";
  const sdk::Host services(host());
  const spike_hdf5::SpikeCamera camera{{240, 320}, false};
  ASSERT_EQ(spike_hdf5::spike_frames(camera, file, services.file_size(file)), 256u);
  std::vector<std::byte> stream(services.file_size(file));
  services.pread(file, 0, stream);
  const Box all{0, 0, camera.size};
  std::vector<uint8_t> room(spike_hdf5::counting_bytes(32, all));
  const auto counts = spike_hdf5::count_spikes(camera, stream, 32, all, room);
  EXPECT_TRUE(std::ranges::equal(counts, stored<float>("voxel", 1, 32 * kPixels)));
}

// The same stream beside the sharp frame of its time, as one pair.
TEST_F(RealSequence, TheStreamAndItsPictureAreAPair) {
  const auto sharp = stored<float>("sharp", 1, 3 * kPixels);
  std::vector<uint8_t> pixels;
  for (const float value : sharp) pixels.push_back(static_cast<uint8_t>(std::lround(255.0f * value)));
  write_bytes(folder_ / "frame_1.png", encode_png(pixels, {240, 320}));
  std::filesystem::copy_file(real_ / "frame_1_256x240x320.dat", folder_ / "frame_1.dat");
  const Sample sample = read_clip(
      *open_spikes(folder_, "clip_length = 1\nuse_blur = false\nflip_vertical = false\nvoxel_transform = \"none\""), 0);
  EXPECT_EQ(values<float>(sample, "voxel"), stored<float>("voxel", 1, 32 * kPixels));
  const auto planes = values<uint8_t>(sample, "sharp");
  for (std::size_t i = 0; i < kPixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(planes[c * kPixels + i], pixels[3 * i + c]);
  }
}

}  // namespace
}  // namespace headroom
