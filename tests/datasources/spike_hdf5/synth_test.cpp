#include <cmath>
#include <fstream>

#include "spike_source.hpp"

namespace headroom {
namespace {

class SynthSequences : public TemporaryFolder {
 protected:
  std::filesystem::path make(const std::string& name, const std::string& options,
                             std::string* problem = nullptr) const {
    std::filesystem::create_directory(folder_ / name);
    const toml::table table = toml::parse(options);
    const hr_synth* synth = spike_plugin().synth();
    EXPECT_NE(synth, nullptr);
    const OptionTable spec = to_option_table(synth->options);
    const NativeOptions native(spec, check_options(spec, &table, "data.synth", "data source 'spike_hdf5'"));
    hr_error error{sizeof(hr_error), HR_OK, {}};
    const hr_status status = synth->write(host(), native.values(), (folder_ / name).c_str(), &error);
    if (problem != nullptr)
      *problem = error.message;
    else
      EXPECT_EQ(status, HR_OK) << error.message;
    return folder_ / name;
  }
  static std::string bytes(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static double psnr(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    double squares = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(double(a[i]) - double(b[i]), 2.0);
    return 10.0 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / squares);
  }
  static constexpr const char* kSmall = "sequences = 2\nframes = 3\nheight = 32\nwidth = 40\nbins = 4\n";
};

TEST_F(SynthSequences, SameOptionsGiveSameBytesAndAnotherSeedOthers) {
  make("a", kSmall);
  make("b", kSmall);
  make("c", std::string(kSmall) + "seed = 1");
  for (const char* file : {"seq_0000.hdf5", "seq_0001.hdf5"}) {
    EXPECT_EQ(bytes(folder_ / "a" / file), bytes(folder_ / "b" / file));
    EXPECT_NE(bytes(folder_ / "a" / file), bytes(folder_ / "c" / file));
  }
  EXPECT_NE(bytes(folder_ / "a" / "seq_0000.hdf5"), bytes(folder_ / "a" / "seq_0001.hdf5"));
}

TEST_F(SynthSequences, OpenAsAsked) {
  const std::string clips = "clip_length = 2\nrandom_flip = false";
  const auto compact = open_spikes(make("a", std::string(kSmall) + "spike_factor = 2"), clips);
  EXPECT_EQ(compact->fields()[0].shape, (std::vector<int64_t>{2, 3, 32, 40}));
  EXPECT_EQ(compact->fields()[2].shape, (std::vector<int64_t>{2, 4, 32, 40}));
  EXPECT_TRUE(sdk::same_type(compact->fields()[0].dtype, sdk::u8));
  ASSERT_EQ(compact->length(0), 4u);
  const auto plain = open_spikes(make("b", std::string(kSmall) + "spike_factor = 2\nstorage = \"float32\""), clips);
  EXPECT_TRUE(sdk::same_type(plain->fields()[0].dtype, sdk::f32));
  const Sample a = read_clip(*compact, 3), b = read_clip(*plain, 3);
  EXPECT_EQ(a.at("voxel"), b.at("voxel"));
  const auto rounded = values<uint8_t>(a, "sharp");
  const auto exact = values<float>(b, "sharp");
  for (std::size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(255.0f * exact[i], rounded[i], 0.5001f);
}

// What a network needs: blurred frames are some decibels away from the sharp ones, in each sequence, and nothing is
// grey in grey.
TEST_F(SynthSequences, WhatMovesIsBlurred) {
  const auto source = open_spikes(make("a", "sequences = 4"), "clip_length = 10\nuse_voxel = false");
  ASSERT_EQ(source->length(0), 4u);
  for (uint64_t sequence = 0; sequence < 4; ++sequence) {
    const Sample sample = read_clip(*source, sequence);
    const auto blur = values<uint8_t>(sample, "blur"), sharp = values<uint8_t>(sample, "sharp");
    EXPECT_LT(psnr(blur, sharp), 28.0) << sequence;
    EXPECT_GT(psnr(blur, sharp), 14.0) << sequence;
    const auto [darkest, brightest] = std::ranges::minmax_element(sharp);
    EXPECT_GT(*brightest - *darkest, 150) << sequence;
  }
  const auto still = open_spikes(make("b", "sequences = 1\nspeed = 0.0"), "clip_length = 10\nuse_voxel = false");
  const Sample sample = read_clip(*still, 0);
  EXPECT_GT(psnr(values<uint8_t>(sample, "blur"), values<uint8_t>(sample, "sharp")), 48.0);  // but for rounding
}

// A pixel fires as often as the light it gathered, which blurred frames tell, fills it: to one spike at most.
TEST_F(SynthSequences, SpikesTellTheLight) {
  for (const std::size_t factor : {1u, 2u}) {
    const std::string name = "by " + std::to_string(factor);
    make(name, "sequences = 1\nframes = 2\nsteps_per_bin = 16\nstorage = \"float32\"\nspike_factor = " +
                   std::to_string(factor));
    const auto file = folder_ / name / "seq_0000.hdf5";
    constexpr std::size_t side = 96, bins = 8;
    const std::size_t small = side / factor, spike_pixels = small * small;
    std::vector<float> blur(side * side * 3), voxel(bins * spike_pixels);
    sdk::Array(sdk::Host(host()), file, "/blur").read_rows(1, 1, std::array{sdk::target(blur.data())});
    sdk::Array(sdk::Host(host()), file, "/voxel").read_rows(1, 1, std::array{sdk::target(voxel.data())});
    std::vector<double> light(spike_pixels), spikes(spike_pixels);
    const double weights[] = {0.3, 0.59, 0.11};
    for (std::size_t i = 0; i < blur.size(); ++i) {
      const std::size_t y = i / 3 / side / factor, x = i / 3 % side / factor;
      light[y * small + x] += weights[i % 3] * std::pow(double(blur[i]), 2.2) / double(factor * factor);
    }
    for (std::size_t i = 0; i < voxel.size(); ++i) spikes[i % spike_pixels] += voxel[i];
    for (std::size_t i = 0; i < spike_pixels; ++i) ASSERT_NEAR(spikes[i], 0.9925 * 128.0 * light[i], 1.001) << factor;
  }
}

// Within an exposure the spikes follow what moves: its first and its last bins see different pictures.
TEST_F(SynthSequences, BinsFollowTheMotion) {
  const auto at_speed = [&](const std::string& name, const std::string& speed) {
    const auto source = open_spikes(make(name, "sequences = 1\nframes = 1\nsteps_per_bin = 32\nspeed = " + speed),
                                    "clip_length = 1\nvoxel_transform = \"none\"");
    const auto voxel = values<float>(read_clip(*source, 0), "voxel");
    constexpr std::size_t pixels = 96 * 96;
    double difference = 0.0;
    for (std::size_t i = 0; i < pixels; ++i) difference += std::abs(voxel[7 * pixels + i] - voxel[i]);
    return difference / pixels;
  };
  EXPECT_GT(at_speed("fast", "8.0"), 2.0);
  EXPECT_LT(at_speed("still", "0.0"), 0.7);
}

TEST_F(SynthSequences, SizesThatTheSpikeCameraCannotHave) {
  std::string problem;
  make("a", "height = 36\nspike_factor = 8", &problem);
  EXPECT_EQ(problem, "frames of 36x96 cannot be divided by spike_factor = 8; choose height and width that can");
}

}  // namespace
}  // namespace headroom
