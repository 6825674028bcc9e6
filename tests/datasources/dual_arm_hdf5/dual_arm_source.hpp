// The datasource dual_arm_hdf5 through its own boundary, and small episodes written.
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
#include "jpeg_writer.hpp"

namespace headroom {

inline const Library& dual_arm_plugin() {
  static const Library library = load_plugin("dual_arm_hdf5");
  return library;
}

inline std::shared_ptr<const Source> open_episodes(const std::filesystem::path& path, const std::string& options = "") {
  return open_source(dual_arm_plugin(), path, options);
}

struct DualArmSample {
  std::vector<uint8_t> image, is_pad;
  std::vector<float> qpos, action;
  bool operator==(const DualArmSample&) const = default;
};

inline std::vector<DualArmSample> read_samples(const Source& source, uint32_t split, const std::vector<uint64_t>& index,
                                               const std::vector<uint64_t>& key, bool augment) {
  Reader reader = source.reader();
  std::vector<DualArmSample> samples;
  for (const Sample& sample : read_fields(reader, source, split, index, key, augment)) {
    samples.push_back({values<uint8_t>(sample, "image"), values<uint8_t>(sample, "is_pad"),
                       values<float>(sample, "qpos"), values<float>(sample, "action")});
  }
  return samples;
}

inline DualArmSample read_sample(const Source& source, uint64_t index, uint64_t key = 0, bool augment = false,
                                 uint32_t split = 0) {
  return read_samples(source, split, {index}, {key}, augment)[0];
}

// Of a standardised field, as the source tells it.
inline std::vector<float> means_of(const Source& source, std::size_t field) {
  std::vector<float> means;
  for (const Channel& channel : source.fields()[field].channels) means.push_back(static_cast<float>(channel.mean));
  return means;
}
inline std::vector<float> deviations_of(const Source& source, std::size_t field) {
  std::vector<float> deviations;
  for (const Channel& channel : source.fields()[field].channels) deviations.push_back(static_cast<float>(channel.std));
  return deviations;
}

// A key whose draw starts a training sample at `step` of `steps`.
inline uint64_t key_that_starts_at(uint64_t step, uint64_t steps) {
  using namespace sdk::literals;
  uint64_t key = 0;
  while (sdk::below(key, "start"_site, steps) != step) ++key;
  return key;
}

// An episode to write: qpos[t][j] = 10 number + t + j / 100, action that and 0.5, frames of one colour each. Fields
// left out or of another kind make it a broken one.
struct EpisodeSpec {
  uint64_t number = 0, steps = 12, joints = 14, action_steps = 0, camera_steps = 0;  // 0: as `steps`
  uint64_t height = 6, width = 8;
  std::vector<std::string> cameras = {"left", "top"};
  bool jpeg = false, simulated = true, tell_sim = true, has_action = true, has_images = true;
  DLDataType joint_type = sdk::f32, image_type = sdk::u8;
  std::vector<uint64_t> image_shape = {};  // behind the steps, in place of [height, width, 3]
  std::function<void(uint64_t step, std::vector<uint8_t>& row)> edit_jpeg = {};
  std::function<void(uint64_t step, std::vector<double>& qpos, std::vector<double>& action)> edit = {};
};

inline uint8_t level_of(const EpisodeSpec& spec, uint64_t camera, uint64_t step, uint64_t channel) {
  return static_cast<uint8_t>((40 * spec.number + 90 * camera + 7 * step + 50 * channel) % 256);
}

inline std::vector<uint8_t> frame_of(const EpisodeSpec& spec, uint64_t camera, uint64_t step) {
  std::vector<uint8_t> pixels(spec.height * spec.width * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = level_of(spec, camera, step, i % 3);
  return pixels;
}

inline void append_numbers(sdk::ArrayWriter& writer, uint32_t id, DLDataType type, const std::vector<double>& values) {
  const std::vector<float> narrow(values.begin(), values.end());
  const std::vector<int32_t> whole(values.begin(), values.end());
  const void* data = type.code == kDLInt ? static_cast<const void*>(whole.data())
                     : type.bits == 32   ? static_cast<const void*>(narrow.data())
                                         : values.data();
  writer.append(id, data, 1);
}

inline std::filesystem::path write_episode(const std::filesystem::path& folder, const EpisodeSpec& spec) {
  dual_arm_plugin();
  const sdk::Host services(host());
  const auto file = folder / ("episode_" + std::to_string(spec.number) + ".hdf5");
  sdk::ArrayWriter writer(services, file);
  const uint64_t actions = spec.action_steps > 0 ? spec.action_steps : spec.steps;
  const uint64_t frames = spec.camera_steps > 0 ? spec.camera_steps : spec.steps;
  const auto declare = [&](const std::string& dataset, std::vector<uint64_t> shape, DLDataType type) {
    std::vector<uint64_t> chunk;
    if (shape[0] == 0) {
      chunk = shape;
      chunk[0] = 1;
    }
    return writer.dataset({.dataset = dataset, .shape = shape, .chunk = chunk, .dtype = type});
  };
  const uint32_t qpos = declare("/observations/qpos", {spec.steps, spec.joints}, spec.joint_type);
  const uint32_t action = spec.has_action ? declare("/action", {actions, spec.joints}, spec.joint_type) : 0;
  for (uint64_t t = 0; t < std::max(spec.steps, actions); ++t) {
    std::vector<double> positions(spec.joints), commands(spec.joints);
    for (uint64_t j = 0; j < spec.joints; ++j) {
      positions[j] = static_cast<double>(10 * spec.number + t) + static_cast<double>(j) / 100.0;
      commands[j] = positions[j] + 0.5;
    }
    if (spec.edit) spec.edit(t, positions, commands);
    if (t < spec.steps) append_numbers(writer, qpos, spec.joint_type, positions);
    if (t < actions && spec.has_action) append_numbers(writer, action, spec.joint_type, commands);
  }
  constexpr uint64_t row_bytes = 2000;  // of a padded JPEG
  for (uint64_t c = 0; c < spec.cameras.size() && spec.has_images; ++c) {
    std::vector<uint64_t> shape =
        spec.jpeg ? std::vector<uint64_t>{row_bytes} : std::vector<uint64_t>{spec.height, spec.width, 3};
    if (!spec.image_shape.empty()) shape = spec.image_shape;
    shape.insert(shape.begin(), frames);
    const uint32_t id = declare("/observations/images/" + spec.cameras[c], shape, spec.image_type);
    for (uint64_t t = 0; t < frames; ++t) {
      std::vector<uint8_t> row = frame_of(spec, c, t);
      if (spec.jpeg) {
        row = encode_as_opencv(row, spec.height, spec.width);
        row.resize(row_bytes);
        if (spec.edit_jpeg) spec.edit_jpeg(t, row);
      }
      row.resize(std::max<std::size_t>(row.size(), 65536));
      writer.append(id, row.data(), 1);
    }
  }
  if (!spec.has_images) {
    const float depth = 0.0f;
    writer.append(writer.dataset({.dataset = "/observations/images/top_depth", .shape = {1, 1}}), &depth, 1);
  }
  if (spec.tell_sim) writer.attribute("/", "sim", sdk::Attribute::of(int64_t{spec.simulated ? 1 : 0}));
  writer.commit();
  return file;
}

}  // namespace headroom
