#include "episode.hpp"

#include <algorithm>
#include <array>

#include "headroom/sdk/planes.hpp"

namespace dual_arm_hdf5 {

namespace {

[[noreturn]] void bad(const std::filesystem::path& file, const std::string& sentence) {
  throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + sentence);
}

// What is wrong with a dataset is wrong with the data, not with an option.
sdk::Array open_dataset(const sdk::Host& host, const std::filesystem::path& file, const std::string& dataset) {
  try {
    return sdk::Array(host, file, dataset);
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT) throw;
    throw sdk::Error(HR_DATA_CORRUPT, problem.what());
  }
}

std::string type_name(const DLDataType& type) {
  if (type.bits == 0) return "no numbers";
  const char* kind = type.code == kDLFloat ? "float" : type.code == kDLInt ? "int" : "uint";
  return type.code == kDLBool ? "bool" : kind + std::to_string(type.bits);
}

// [T, joints] of float32 or float64.
sdk::Array open_joints(const sdk::Host& host, const std::filesystem::path& file, const char* dataset) {
  sdk::Array array = open_dataset(host, file, dataset);
  const sdk::ArrayInfo& info = array.info();
  const std::string name = dataset;
  if (info.dtype.code != kDLFloat || (info.dtype.bits != 32 && info.dtype.bits != 64))
    bad(file, name + " holds " + type_name(info.dtype) + "; float32 or float64 is needed");
  if (info.shape.size() != 2 || info.shape[1] == 0) {
    bad(file, name + " has " + std::to_string(info.shape.size()) +
                  " axes; two are needed: steps, and a value for each joint");
  }
  if (info.shape[0] == 0) bad(file, name + " has no steps; take the episode out");
  return array;
}

Camera open_camera(const sdk::Host& host, const std::filesystem::path& file, const std::string& name) {
  Camera camera{std::string(kImages) + "/" + name, open_dataset(host, file, std::string(kImages) + "/" + name), {}, 0};
  const sdk::ArrayInfo& info = camera.array.info();
  if (!sdk::same_type(info.dtype, sdk::u8))
    bad(file, camera.dataset + " holds " + type_name(info.dtype) + "; uint8 is needed");
  const auto& shape = info.shape;
  const bool raw = shape.size() == 4 && shape[3] == 3 && shape[1] > 0 && shape[2] > 0;
  if (!raw && (shape.size() != 2 || shape[1] == 0)) {
    std::string text;
    for (const uint64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    bad(file, camera.dataset + " is [" + text +
                  "]; [steps, height, width, 3] of pixels or [steps, bytes] of JPEG frames is needed");
  }
  if (raw) camera.pixels = {shape[1], shape[2]};
  camera.row_bytes = raw ? 3 * shape[1] * shape[2] : shape[1];
  return camera;
}

void require_steps(const Episode& episode, const std::string& dataset, uint64_t steps) {
  if (steps == episode.steps()) return;
  bad(episode.file, dataset + " has " + std::to_string(steps) + " steps, " + kQpos + " has " +
                        std::to_string(episode.steps()) + "; record the episode again or take it out");
}

}  // namespace

Episode::Episode(const sdk::Host& host, const std::filesystem::path& path, const std::vector<std::string>& names)
    : file(path), qpos(open_joints(host, path, kQpos)), action(open_joints(host, path, kAction)) {
  require_steps(*this, kAction, action.info().shape[0]);
  const std::vector<std::string> there = names.empty() ? names : cameras_of(host, file);
  for (const std::string& name : names) {
    if (std::ranges::find(there, name) == there.end())
      bad(file, std::string(kImages) + " has no camera '" + name + "'; it has " + sdk::listing(there));
    cameras.push_back(open_camera(host, file, name));
    require_steps(*this, cameras.back().dataset, cameras.back().array.info().shape[0]);
  }
}

std::vector<std::string> cameras_of(const sdk::Host& host, const std::filesystem::path& file) {
  std::vector<std::string> names;
  for (const sdk::Entry& entry : host.list_arrays(file, kImages)) {
    if (!entry.is_container && !entry.name.ends_with("_depth")) names.push_back(entry.name);
  }
  return names;
}

bool is_simulated(const sdk::Host& host, const std::filesystem::path& file) {
  const auto value = host.attribute(file, "/", "sim");
  return value && value->type != HR_STRING && value->f64 != 0.0;
}

std::span<const uint8_t> FrameReader::row(const Camera& camera, uint64_t step) {
  row_.resize(std::max<std::size_t>(row_.size(), camera.row_bytes));
  const std::array<uint64_t, 4> start{step}, raw{1, camera.pixels.height, camera.pixels.width, 3},
      padded{1, camera.row_bytes};
  const std::size_t axes = camera.is_jpeg() ? 2 : 4;
  const std::array targets = {sdk::target(row_.data())};
  camera.array.read_box(std::span(start).first(axes), std::span(camera.is_jpeg() ? padded : raw).first(axes), targets);
  return {row_.data(), camera.row_bytes};
}

template <class Decode>
void FrameReader::blame(const Episode& episode, const Camera& camera, uint64_t step, Decode&& decode) {
  try {
    decode();
  } catch (const BadJpeg& problem) {
    bad(episode.file, camera.dataset + ": the frame of step " + std::to_string(step) + " " + problem.what() +
                          "; record the episode again or take it out");
  }
}

void FrameReader::read(const Episode& episode, const Camera& camera, uint64_t step, const FrameSize& size,
                       std::span<uint8_t> planes) {
  const std::span<const uint8_t> bytes = row(camera, step);
  if (camera.is_jpeg()) {
    blame(episode, camera, step, [&] { jpeg_.decode(bytes, size, planes); });
  } else {
    const std::size_t count = size.height * size.width;
    sdk::split_planes(bytes.data(), count, planes.data(), count);
  }
}

FrameSize FrameReader::size(const Episode& episode, const Camera& camera, uint64_t step) {
  if (!camera.is_jpeg()) return camera.pixels;
  FrameSize size;
  blame(episode, camera, step, [&] { size = jpeg_.size(row(camera, step)); });
  return size;
}

}  // namespace dual_arm_hdf5
