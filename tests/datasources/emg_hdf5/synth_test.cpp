#include <cmath>

#include "emg_source.hpp"

namespace headroom {
namespace {

class Synth : public TemporaryFolder {
 protected:
  void make(const std::filesystem::path& folder, const std::string& options) const {
    std::filesystem::create_directory(folder);
    const toml::table table = toml::parse(options);
    const hr_synth* synth = emg_plugin().synth();
    ASSERT_NE(synth, nullptr);
    const OptionTable spec = to_option_table(synth->options);
    const NativeOptions native(spec, check_options(spec, &table, "data.synth", "data source 'emg_hdf5'"));
    hr_error error{sizeof(hr_error), HR_OK, {}};
    ASSERT_EQ(synth->write(host(), native.values(), folder.c_str(), &error), HR_OK) << error.message;
  }
  static std::string bytes(const std::filesystem::path& folder) {
    std::string all;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& file : files) {
      std::ifstream stream(file, std::ios::binary);
      all += file.filename().string() + std::string(std::istreambuf_iterator<char>(stream), {});
    }
    return all;
  }
  static constexpr const char* kSmall = "sessions = 4\nseconds = 1.5\n";
};

TEST_F(Synth, SameOptionsGiveSameBytesAndAnotherSeedOthers) {
  make(folder_ / "a", kSmall);
  make(folder_ / "b", kSmall);
  make(folder_ / "c", std::string(kSmall) + "seed = 1");
  EXPECT_EQ(bytes(folder_ / "a"), bytes(folder_ / "b"));
  EXPECT_NE(bytes(folder_ / "a"), bytes(folder_ / "c"));
}

TEST_F(Synth, OpensAsRecordingsWithSplits) {
  make(folder_ / "a", "sessions = 16\nseconds = 0.5\n");
  const auto source = open_emg(folder_ / "a", "stride = 50");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val", "test"}));
  EXPECT_EQ(source->groups(0).size(), 12u);
  EXPECT_EQ(source->groups(1).size(), 2u);
  EXPECT_EQ(source->groups(2).size(), 2u);
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{500, 16}));
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{500, 20}));
  EXPECT_EQ(source->fields()[0].sample_rate_hz, 2000.0);
  EXPECT_EQ(source->groups(0)[0].name.substr(0, 22), "2022-12-06-1670313600-");
}

TEST_F(Synth, TakesAnyShape) {
  make(folder_ / "a",
       "sessions = 1\nseconds = 4.0\nchannels = 3\njoints = 7\nsample_rate_hz = 125.0\nangles = \"float64\"");
  const auto source = open_emg(folder_ / "a", "window_size = 100");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train"}));
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{100, 3}));
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{100, 7}));
  EXPECT_EQ(source->fields()[0].sample_rate_hz, 125.0);
}

// Every second loses 0.2 s of angles at the most that is allowed.
TEST_F(Synth, LosesAngles) {
  make(folder_ / "a", "sessions = 1\nseconds = 10.0\njoints = 3\nchannels = 1\nik_failures = 0.2");
  make(folder_ / "b", "sessions = 1\nseconds = 10.0\njoints = 3\nchannels = 1\nik_failures = 0.0");
  const auto share = [&](const char* name) {
    const EmgSample all = read_sample(*open_emg(folder_ / name, "window_size = 20000\nskip_ik_failures = false"), 0);
    return static_cast<double>(std::ranges::count(all.valid, 0)) / static_cast<double>(all.valid.size());
  };
  EXPECT_GT(share("a"), 0.12);
  EXPECT_LT(share("a"), 0.28);
  EXPECT_EQ(share("b"), 0.0);
}

// Weights w that make `rows` times w closest to `y`: normal equations by elimination.
std::vector<double> least_squares(const std::vector<std::vector<double>>& rows, const std::vector<double>& y) {
  const std::size_t n = rows[0].size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0.0));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) a[i][k] += rows[r][i] * rows[r][k];
      a[i][n] += rows[r][i] * y[r];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      const double factor = k == i ? 0.0 : a[k][i] / a[i][i];
      for (std::size_t j = i; j <= n && k != i; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  std::vector<double> weights;
  for (std::size_t i = 0; i < n; ++i) weights.push_back(a[i][n] / a[i][i]);
  return weights;
}

// What a model needs: from the power of each channel in 0.1 s a line fitted to one half of a session tells, in the
// other half, how every joint stands and moves.
TEST_F(Synth, EmgFollowsTheAngles) {
  make(folder_ / "a", "sessions = 1\nseconds = 40.0\nik_failures = 0.0");
  constexpr std::size_t records = 80000, channels = 16, joints = 20, step = 200, steps = records / step - 1;
  const EmgSample all = read_sample(*open_emg(folder_ / "a", "window_size = 80000\nskip_ik_failures = false"), 0);
  std::vector<std::vector<double>> power(steps, std::vector<double>(channels + 1, 0.0));
  for (std::size_t s = 0; s < steps; ++s) {
    power[s][channels] = 1.0;
    for (std::size_t t = s * step; t < (s + 1) * step; ++t) {
      for (std::size_t c = 0; c < channels; ++c) power[s][c] += std::abs(all.emg[t * channels + c]) / step;
    }
  }
  const std::vector<std::vector<double>> early(power.begin(), power.begin() + steps / 2);
  for (std::size_t j = 0; j < joints; ++j) {
    std::vector<double> drive(steps);
    for (std::size_t s = 0; s < steps; ++s) {
      const auto angle = [&](std::size_t t) { return double(all.angles[t * joints + j]); };
      drive[s] = angle(s * step + step / 2) + 2.3 * (angle((s + 1) * step) - angle(s * step));
    }
    const auto weights = least_squares(early, {drive.begin(), drive.begin() + steps / 2});
    double wrong = 0.0, sum = 0.0, squares = 0.0;
    for (std::size_t s = steps / 2; s < steps; ++s) {
      double told = 0.0;
      for (std::size_t c = 0; c <= channels; ++c) told += power[s][c] * weights[c];
      wrong += (told - drive[s]) * (told - drive[s]);
      sum += drive[s];
      squares += drive[s] * drive[s];
    }
    const double explained = 1.0 - wrong / (squares - sum * sum / double(steps - steps / 2));
    EXPECT_GT(explained, 0.4) << "joint " << j;
  }
}

}  // namespace
}  // namespace headroom
