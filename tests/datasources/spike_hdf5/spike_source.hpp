// The datasource spike_hdf5 through its own boundary, and small sequences written.
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
#include "spike_hdf5/orientation.hpp"

namespace headroom {

using spike_hdf5::Box;
using spike_hdf5::Orientation;
using spike_hdf5::Size;

inline const Library& spike_plugin() {
  static const Library library = load_plugin("spike_hdf5");
  return library;
}

inline std::shared_ptr<const Source> open_spikes(const std::filesystem::path& path, const std::string& options) {
  return open_source(spike_plugin(), path, options);
}

inline Sample read_clip(const Source& source, uint64_t index, uint64_t key = 0, bool augment = false,
                        uint32_t split = 0) {
  Reader reader = source.reader();
  return read_fields(reader, source, split, {index}, {key}, augment)[0];
}

// A sequence to write. Frames hold level_of(), voxels count_of(); what is left out or of another kind makes it a broken
// one.
struct SequenceSpec {
  std::string name = "a";
  uint64_t frames = 5, height = 16, width = 24, bins = 3;
  Size voxel = {};                              // {}: as the frames
  uint64_t sharp_frames = 0, voxel_frames = 0;  // 0: as `frames`
  Size sharp = {};
  bool float_images = true, float_sharp = true, float_counts = true, chunked = false;
  bool has_blur = true, has_sharp = true, has_voxel = true;
  DLDataType voxel_type = sdk::f32;  // another one makes it broken
  std::function<void(const std::string& dataset, uint64_t frame, std::vector<float>& values)> edit = {};

  Size voxel_size() const { return voxel.height == 0 ? Size{height, width} : voxel; }
};

inline uint8_t level_of(bool sharp, uint64_t frame, uint64_t y, uint64_t x, uint64_t channel) {
  return static_cast<uint8_t>(17 * y + 5 * x + 83 * channel + 29 * frame + (sharp ? 101 : 0) + x * y);
}
inline uint8_t count_of(uint64_t frame, uint64_t bin, uint64_t y, uint64_t x) {
  return static_cast<uint8_t>((3 * y + x + 5 * bin + 2 * frame + x * y) % 7);
}

inline void append_values(sdk::ArrayWriter& writer, uint32_t id, bool is_float, const std::vector<float>& values) {
  if (is_float) return writer.append(id, values.data(), 1);
  std::vector<uint8_t> bytes;
  for (const float value : values) bytes.push_back(static_cast<uint8_t>(value));
  writer.append(id, bytes.data(), 1);
}

inline void write_images(sdk::ArrayWriter& writer, const SequenceSpec& spec, bool sharp) {
  const Size size = sharp && spec.sharp.height > 0 ? spec.sharp : Size{spec.height, spec.width};
  const uint64_t frames = sharp && spec.sharp_frames > 0 ? spec.sharp_frames : spec.frames;
  const bool is_float = sharp ? spec.float_sharp && spec.float_images : spec.float_images;
  const std::string name = sharp ? "sharp" : "blur";
  std::vector<uint64_t> chunk;
  if (spec.chunked || frames == 0) chunk = {1, size.height, size.width, 3};
  const uint32_t id = writer.dataset({.dataset = "/" + name,
                                      .shape = {frames, size.height, size.width, 3},
                                      .chunk = chunk,
                                      .dtype = is_float ? sdk::f32 : sdk::u8,
                                      .deflate = spec.chunked ? 1 : 0});
  for (uint64_t t = 0; t < frames; ++t) {
    std::vector<float> values;
    for (uint64_t y = 0; y < size.height; ++y) {
      for (uint64_t x = 0; x < size.width; ++x) {
        for (uint64_t c = 0; c < 3; ++c)
          values.push_back(static_cast<float>(level_of(sharp, t, y, x, c)) / (is_float ? 255.0f : 1.0f));
      }
    }
    if (spec.edit) spec.edit(name, t, values);
    append_values(writer, id, is_float, values);
  }
}

inline void write_voxels(sdk::ArrayWriter& writer, const SequenceSpec& spec) {
  const Size size = spec.voxel_size();
  const uint64_t frames = spec.voxel_frames > 0 ? spec.voxel_frames : spec.frames;
  std::vector<uint64_t> chunk;
  if (spec.chunked || frames == 0) chunk = {1, spec.bins, size.height, size.width};
  const bool is_float = spec.float_counts;
  const uint32_t id = writer.dataset({.dataset = "/voxel",
                                      .shape = {frames, spec.bins, size.height, size.width},
                                      .chunk = chunk,
                                      .dtype = is_float ? spec.voxel_type : sdk::u8,
                                      .deflate = spec.chunked ? 1 : 0});
  for (uint64_t t = 0; t < frames; ++t) {
    std::vector<float> values;
    for (uint64_t k = 0; k < spec.bins; ++k) {
      for (uint64_t y = 0; y < size.height; ++y) {
        for (uint64_t x = 0; x < size.width; ++x) values.push_back(count_of(t, k, y, x));
      }
    }
    if (spec.edit) spec.edit("voxel", t, values);
    append_values(writer, id, is_float, values);
  }
}

inline std::filesystem::path write_sequence(const std::filesystem::path& folder, const SequenceSpec& spec) {
  spike_plugin();
  const sdk::Host services(host());
  std::filesystem::create_directories(folder);
  const auto file = folder / (spec.name + ".hdf5");
  sdk::ArrayWriter writer(services, file);
  if (spec.has_blur) write_images(writer, spec, false);
  if (spec.has_sharp) write_images(writer, spec, true);
  if (spec.has_voxel) write_voxels(writer, spec);
  writer.commit();
  return file;
}

// planes[count][size] of a clip, cut and turned: what a source must give for them.
template <class T>
std::vector<T> cut(const std::vector<T>& planes, const Size& size, const Box& box,
                   const Orientation& orientation = {}) {
  std::vector<T> result;
  for (std::size_t plane = 0; plane < planes.size() / size.pixels(); ++plane) {
    std::vector<T> part;
    for (uint64_t y = box.top; y < box.top + box.size.height; ++y) {
      for (uint64_t x = box.left; x < box.left + box.size.width; ++x)
        part.push_back(planes[plane * size.pixels() + y * size.width + x]);
    }
    spike_hdf5::orient(part.data(), box.size, orientation);
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

}  // namespace headroom
