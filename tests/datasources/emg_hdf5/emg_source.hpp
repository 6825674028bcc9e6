// The datasource through the plugin's own boundary: opened with TOML options, samples read into vectors, small
// recordings written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <stdlib.h>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "data/arrays.hpp"
#include "error.hpp"
#include "headroom/datasource.hpp"
#include "plugins/host.hpp"
#include "plugins/library.hpp"
#include "plugins/source.hpp"

namespace headroom {

inline const Library& emg_plugin() {
  static const Library library = [] {
    register_data_services();
    return Library::load(std::filesystem::path(HEADROOM_PLUGIN_DIR) / "emg_hdf5.so");
  }();
  return library;
}

// `options`: further keys, as TOML.
inline std::shared_ptr<const Source> open_emg(const std::filesystem::path& path, const std::string& options = "") {
  toml::table table = toml::parse(options);
  table.insert("path", path.string());
  const hr_options* native = emg_plugin().datasource()->options;
  return Source::open(emg_plugin(),
                      check_options(to_option_table(native), &table, "data.options", "data source 'emg_hdf5'"));
}

struct EmgSample {
  std::vector<float> emg, angles;
  std::vector<uint8_t> valid;
};

// Slots start out dirty, so that what read() leaves unwritten shows.
inline std::vector<EmgSample> read_samples(const Source& source, uint32_t split, const std::vector<uint64_t>& index,
                                           const std::vector<uint64_t>& key, bool augment = false) {
  const auto& fields = source.fields();
  const std::size_t n = index.size();
  std::vector<float> emg(n * fields[0].elements(), -77.0f), angles(n * fields[1].elements(), -77.0f);
  std::vector<uint8_t> valid(n * fields[2].elements(), 77);
  std::vector<std::vector<int64_t>> shapes;
  for (const Field& field : fields) {
    shapes.push_back(field.shape);
    shapes.back().insert(shapes.back().begin(), static_cast<int64_t>(n));
  }
  void* data[] = {emg.data(), angles.data(), valid.data()};
  std::vector<DLTensor> slots;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    slots.push_back(
        {data[f], {kDLCPU, 0}, static_cast<int32_t>(shapes[f].size()), fields[f].dtype, shapes[f].data(), nullptr, 0});
  }
  source.reader().read(split, index, key, augment, slots);
  std::vector<EmgSample> samples(n);
  const auto part = [n](const auto& all, std::size_t i) {
    const std::size_t each = all.size() / n;
    return std::vector(all.begin() + static_cast<std::ptrdiff_t>(i * each),
                       all.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
  };
  for (std::size_t i = 0; i < n; ++i) samples[i] = {part(emg, i), part(angles, i), part(valid, i)};
  return samples;
}

inline EmgSample read_sample(const Source& source, uint64_t index, uint64_t key = 0, bool augment = false,
                             uint32_t split = 0) {
  return read_samples(source, split, {index}, {key}, augment)[0];
}

// A recording to write: emg[r][c] = 100 r + c and joint_angles[r][j] = r + j / 10 + 0.5, unless `edit` changes a
// record.
struct RecordingSpec {
  uint64_t records = 100, channels = 3, joints = 2;
  double sample_rate_hz = 100.0;  // 0: no attribute
  std::string angle_unit = "rad";
  std::function<void(uint64_t record, std::vector<float>& angles, std::vector<float>& emg)> edit = {};
  std::vector<uint64_t> chunk = {};
  bool has_emg = true, has_angles = true;
};

inline void write_recording(const std::filesystem::path& file, const RecordingSpec& spec) {
  emg_plugin();
  const sdk::Host services(host());
  sdk::ArrayWriter writer(services, file);
  sdk::ArraySpec array{.dataset = "/emg2pose/timeseries", .shape = {spec.records}, .chunk = spec.chunk};
  array.deflate = spec.chunk.empty() ? 0 : 4;
  // emg first: readers go by name.
  array.members = {{"time", sdk::f64, {}, 0}};
  array.record_bytes = sizeof(double);
  const auto add = [&](const char* name, uint64_t width) {
    array.members.push_back({name, sdk::f32, {width}, array.record_bytes});
    array.record_bytes += width * sizeof(float);
  };
  if (spec.has_emg) add("emg", spec.channels);
  if (spec.has_angles) add("joint_angles", spec.joints);
  const uint32_t id = writer.dataset(array);
  for (uint64_t r = 0; r < spec.records; ++r) {
    std::vector<float> emg(spec.channels), angles(spec.joints);
    for (uint64_t c = 0; c < spec.channels; ++c) emg[c] = static_cast<float>(100 * r + c);
    for (uint64_t j = 0; j < spec.joints; ++j)
      angles[j] = static_cast<float>(static_cast<double>(r) + 0.1 * static_cast<double>(j) + 0.5);
    if (spec.edit) spec.edit(r, angles, emg);
    const double time = 5.0 + static_cast<double>(r) / 100.0;
    std::string record(reinterpret_cast<const char*>(&time), sizeof time);
    if (spec.has_emg) record.append(reinterpret_cast<const char*>(emg.data()), emg.size() * sizeof(float));
    if (spec.has_angles) record.append(reinterpret_cast<const char*>(angles.data()), angles.size() * sizeof(float));
    writer.append(id, record.data(), 1);
  }
  if (spec.sample_rate_hz > 0.0) writer.attribute("/emg2pose", "sample_rate", sdk::Attribute::of(spec.sample_rate_hz));
  writer.attribute("/emg2pose", "joint_units", sdk::Attribute::of(spec.angle_unit));
  writer.commit();
}

// A folder of its own for each test.
class EmgFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-emg-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  std::filesystem::path folder_;
};

// What opening or reading says, with "DIR" for `folder`; "" when nothing is thrown.
inline std::string sentence_of(const std::filesystem::path& folder, Exit expected, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), expected) << error.what();
    std::string text = error.what();
    for (std::size_t at; (at = text.find(folder.string())) != std::string::npos;)
      text.replace(at, folder.string().size(), "DIR");
    return text;
  }
  return "";
}

}  // namespace headroom
