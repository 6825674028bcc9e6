// The datasource emg_hdf5 through its own boundary, and small recordings written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../../runner/plugins/process_host.hpp"
#include "../plugin_source.hpp"
#include "headroom/datasource.hpp"

namespace headroom {

inline const Library& emg_plugin() {
  static const Library library = load_plugin("emg_hdf5");
  return library;
}

inline std::shared_ptr<const Source> open_emg(const std::filesystem::path& path, const std::string& options = "") {
  return open_source(emg_plugin(), path, options);
}

struct EmgSample {
  std::vector<float> emg, angles;
  std::vector<uint8_t> valid;
};

inline std::vector<EmgSample> read_samples(const Source& source, uint32_t split, const std::vector<uint64_t>& index,
                                           const std::vector<uint64_t>& key, bool augment = false) {
  Reader reader = source.reader();
  std::vector<EmgSample> samples;
  for (const Sample& sample : read_fields(reader, source, split, index, key, augment)) {
    samples.push_back(
        {values<float>(sample, "emg"), values<float>(sample, "joint_angles"), values<uint8_t>(sample, "valid")});
  }
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

}  // namespace headroom
