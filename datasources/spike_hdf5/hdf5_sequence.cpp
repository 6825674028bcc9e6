#include "hdf5_sequence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "headroom/sdk/planes.hpp"
#include "headroom/sdk/shape_text.hpp"

namespace spike_hdf5 {

namespace {

constexpr uint64_t band_bytes = 512 << 10;               // read and taken apart while it is in the cache of the core
constexpr float least_value = -0.5f, most_value = 1.5f;  // of an image: what rounding and resizing may leave of [0, 1]

std::string type_name(const DLDataType& type) {
  if (type.bits == 0) return "no numbers";
  const char* kind = type.code == kDLFloat ? "float" : type.code == kDLInt ? "int" : "uint";
  return type.code == kDLBool ? "bool" : kind + std::to_string(type.bits);
}

bool is_float(const sdk::Array& array) { return sdk::same_type(array.info().dtype, sdk::f32); }

// The place of the first value that is no image's.
std::optional<std::size_t> first_outside(std::span<const float> values) {
  using Floats = float __attribute__((vector_size(16)));
  using Whole = int32_t __attribute__((vector_size(16)));
  constexpr std::size_t lanes = 4, block = 256;
  std::size_t at = 0;
  for (; values.size() - at >= block; at += block) {
    Whole inside = Whole{} - 1;
    for (std::size_t i = 0; i < block; i += lanes) {
      Floats value;
      std::memcpy(&value, values.data() + at + i, sizeof value);
      inside &= (value >= least_value) & (value <= most_value);
    }
    if ((inside[0] & inside[1] & inside[2] & inside[3]) == 0) break;
  }
  const auto found = std::find_if(values.begin() + static_cast<std::ptrdiff_t>(at), values.end(),
                                  [](float value) { return !(value >= least_value && value <= most_value); });
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace

Hdf5Sequence::Hdf5Sequence(const sdk::Host& host, const std::filesystem::path& file, const Wanted& wanted)
    : file_(file) {
  if (wanted.blur) {
    blur_ = open(host, "blur");
    require_images(*blur_, "blur");
  }
  if (wanted.sharp) {
    sharp_ = open(host, "sharp");
    require_images(*sharp_, "sharp");
  }
  if (blur_ && sharp_) require_same_frames();
  if (blur_ || sharp_) describe_images(blur_ ? *blur_ : *sharp_);
  if (!wanted.voxel) return;
  voxel_ = open(host, "voxel");
  describe_voxel(wanted);
}

void Hdf5Sequence::describe_images(const sdk::Array& images) {
  const auto& shape = images.info().shape;
  facts_.frames = shape[0];
  facts_.frame = {shape[1], shape[2]};
  facts_.float_images = is_float(images);
}

void Hdf5Sequence::require_same_frames() const {
  const sdk::ArrayInfo &blur = blur_->info(), &sharp = sharp_->info();
  if (sharp.shape != blur.shape) {
    bad_data(file_, "sharp is " + sdk::shape_text(sharp.shape) + ", blur is " + sdk::shape_text(blur.shape) +
                        "; both must have the same frames: write the file again");
  }
  if (!sdk::same_type(sharp.dtype, blur.dtype)) {
    bad_data(file_, "sharp holds " + type_name(sharp.dtype) + ", blur holds " + type_name(blur.dtype) +
                        "; both must have one type: write the file again");
  }
}

sdk::Array Hdf5Sequence::open(const sdk::Host& host, const std::string& dataset) const {
  try {
    return sdk::Array(host, file_, "/" + dataset);
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT && problem.status() != HR_NOT_FOUND) throw;
    if (!std::filesystem::exists(file_)) throw;
    std::vector<std::string> names;
    for (const sdk::Entry& entry : host.list_arrays(file_)) names.push_back(entry.name);
    if (std::ranges::find(names, dataset) != names.end()) throw sdk::Error(HR_DATA_CORRUPT, problem.what());
    bad_data(file_, "it has no dataset '" + dataset + "', only " +
                        (names.empty() ? "none at all" : sdk::listing(names)) +
                        (dataset == "sharp" ? "; blur, sharp and voxel are needed"
                                            : "; add it, or leave it out with use_" + dataset + " = false"));
  }
}

void Hdf5Sequence::require_images(const sdk::Array& array, const char* name) const {
  const sdk::ArrayInfo& info = array.info();
  if (!is_float(array) && !sdk::same_type(info.dtype, sdk::u8)) {
    bad_data(file_, std::string(name) + " holds " + type_name(info.dtype) +
                        "; float32 in [0, 1] or uint8 is needed: write the file again");
  }
  if (info.shape.size() != 4 || info.shape[3] != 3 || info.shape[1] * info.shape[2] == 0) {
    bad_data(file_,
             std::string(name) + " is " + sdk::shape_text(info.shape) + "; [frames, height, width, 3] is needed");
  }
  if (info.shape[0] == 0) bad_data(file_, std::string(name) + " has no frames; take the file out");
}

void Hdf5Sequence::describe_voxel(const Wanted& wanted) {
  const sdk::ArrayInfo& info = voxel_->info();
  if (!is_float(*voxel_) && !sdk::same_type(info.dtype, sdk::u8)) {
    bad_data(file_,
             "voxel holds " + type_name(info.dtype) + "; float32 or uint8 counts are needed: write the file again");
  }
  const auto& shape = info.shape;
  if (shape.size() != 4 || shape[1] * shape[2] * shape[3] == 0)
    bad_data(file_, "voxel is " + sdk::shape_text(shape) + "; [frames, bins, height, width] is needed");
  facts_.native = {shape[2], shape[3]};
  if (!blur_ && !sharp_) {
    if (shape[0] == 0) bad_data(file_, "voxel has no frames; take the file out");
    facts_.frames = shape[0];
    facts_.frame = frame_like(wanted.like, facts_.native);
    facts_.float_images = wanted.like.float_images;
  }
  if (shape[0] != facts_.frames) {
    bad_data(file_, "voxel has " + std::to_string(shape[0]) + " frames, " + (blur_ ? "blur" : "sharp") + " has " +
                        std::to_string(facts_.frames) + "; each frame needs its own: write the file again");
  }
  if (wanted.bins != 0 && shape[1] != wanted.bins) {
    bad_data(file_, "voxel has " + std::to_string(shape[1]) + " bins; num_bins = " + std::to_string(wanted.bins) +
                        " is asked for: set it to what the files have, or to 0");
  }
  facts_.bins = shape[1];
  facts_.byte_counts = !is_float(*voxel_);
  if (facts_.frame.height % shape[2] != 0 || facts_.frame.width % shape[3] != 0) {
    bad_data(file_, "voxel has planes of " + shown(facts_.native) + ", which do not divide the frames of " +
                        shown(facts_.frame) + "; they must lie on the same view: write the file again");
  }
  facts_.bins_at_once = info.chunk.empty() ? 1 : std::clamp<uint64_t>(info.chunk[1], 1, facts_.bins);
}

void Hdf5Sequence::require_values(Image image, uint64_t frame, const Box& band, std::span<const float> values) const {
  const auto at = first_outside(values);
  if (!at) return;
  const uint64_t pixel = *at / 3;
  const std::string place = std::string(name_of(image)) + "[" + std::to_string(frame) + ", " +
                            std::to_string(band.top + pixel / band.size.width) + ", " +
                            std::to_string(band.left + pixel % band.size.width) + ", " + std::to_string(*at % 3) + "]";
  if (!std::isfinite(values[*at])) bad_data(file_, place + " is no finite number; mend the file or take it out");
  bad_data(file_, place + " is " + std::to_string(values[*at]) +
                      "; float32 frames must lie in [0, 1]: divide them by 255, or store uint8");
}

template <class T>
void Hdf5Sequence::read_planes(Image image, uint64_t frame, const Box& box, Workspace& space, T* planes) {
  const sdk::Array& array = image == Image::blur ? *blur_ : *sharp_;
  // A chunk is taken apart as a whole whatever is wanted of it.
  const bool whole = !array.info().chunk.empty();
  const uint64_t row_values = 3 * box.size.width;
  const uint64_t rows =
      whole ? box.size.height : std::clamp<uint64_t>(band_bytes / (row_values * sizeof(T)), 1, box.size.height);
  const std::span<T> pixels = space.raw<T>(rows * row_values);
  const std::array targets = {sdk::target(pixels.data())};
  for (uint64_t done = 0; done < box.size.height; done += rows) {
    const Box band{box.top + done, box.left, {std::min(rows, box.size.height - done), box.size.width}};
    const std::array<uint64_t, 4> start{frame, band.top, band.left, 0}, count{1, band.size.height, band.size.width, 3};
    array.read_box(start, count, targets);
    if constexpr (std::is_same_v<T, float>)
      require_values(image, frame, band, pixels.first(band.size.height * row_values));
    sdk::split_planes(pixels.data(), band.size.pixels(), planes + done * box.size.width, box.size.pixels());
  }
}

void Hdf5Sequence::read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) {
  if (facts_.float_images) return read_planes(image, frame, box, space, reinterpret_cast<float*>(planes));
  read_planes(image, frame, box, space, reinterpret_cast<uint8_t*>(planes));
}

std::span<const uint8_t> Hdf5Sequence::read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                                   Workspace& space) {
  const std::array<uint64_t, 4> start{frame, first_bin, box.top, box.left},
      count{1, bins, box.size.height, box.size.width};
  const std::span<uint8_t> counts = space.raw<uint8_t>(bins * box.size.pixels());
  const std::array targets = {sdk::target(counts.data())};
  voxel_->read_box(start, count, targets);
  return counts;
}

void Hdf5Sequence::read_voxel(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                              const VoxelTransform& transform, Workspace& space, float* to) {
  if (facts_.byte_counts) return Sequence::read_voxel(frame, first_bin, bins, box, transform, space, to);
  const std::array<uint64_t, 4> start{frame, first_bin, box.top, box.left},
      count{1, bins, box.size.height, box.size.width};
  const uint64_t values = bins * box.size.pixels();
  const std::array targets = {sdk::target(to)};
  voxel_->read_box(start, count, targets);
  if (const auto at = transform.apply({to, values})) {
    const uint64_t pixel = *at % box.size.pixels();
    bad_data(file_, "voxel[" + std::to_string(frame) + ", " + std::to_string(first_bin + *at / box.size.pixels()) +
                        ", " + std::to_string(box.top + pixel / box.size.width) + ", " +
                        std::to_string(box.left + pixel % box.size.width) +
                        "] is no count, or no finite number; mend the file or take it out");
  }
}

}  // namespace spike_hdf5
