#include "plugins/field_checks.hpp"

#include <cmath>

#include "plugins/source.hpp"

namespace headroom {

namespace {

constexpr int64_t kLargestSampleBytes = int64_t{1} << 40;

bool is_known(DLDataType dtype) {
  const int bits = dtype.bits;
  if (dtype.lanes != 1) return false;
  switch (dtype.code) {
    case kDLInt:
    case kDLUInt:
      return bits == 8 || bits == 16 || bits == 32 || bits == 64;
    case kDLFloat:
      return bits == 16 || bits == 32 || bits == 64;
    case kDLBfloat:
      return bits == 16;
    case kDLBool:
      return bits == 8;
    default:
      return false;
  }
}

std::string flaw_of_channels(const hr_field& field, const std::string& name) {
  if (field.channels == nullptr) return "";
  const int64_t extent = field.channel_axis < 0 ? 0 : field.shape[field.channel_axis];
  // Channels stride by the first one's struct_size; one shorter than in 1.0 would let them overlap.
  if (field.channel_count != static_cast<uint64_t>(extent) || !HR_HAS(field.channels, std)) {
    return "field '" + name + "' describes " + std::to_string(field.channel_count) +
           " channels; its channel axis has " + std::to_string(extent);
  }
  for (const Channel& channel : Field::from(field).channels) {
    if (!std::isfinite(channel.mean) || !std::isfinite(channel.std) || channel.std <= 0.0)
      return "a channel of field '" + name + "' has no usable mean and std";
  }
  return "";
}

}  // namespace

std::string flaw_of_field(const hr_field& field, uint32_t i) {
  const std::string name = field.name != nullptr ? field.name : "";
  if (name.empty()) return "its field " + std::to_string(i) + " has no name";
  if (!is_known(field.dtype)) return "field '" + name + "' has the unknown dtype " + dtype_name(field.dtype);
  if (field.ndim < 0 || field.ndim > HR_MAX_DIMS)
    return "field '" + name + "' has " + std::to_string(field.ndim) + " axes; 0 to 8 are allowed";
  // Every known dtype has whole bytes.
  int64_t bytes = field.dtype.bits / 8;
  for (int32_t axis = 0; axis < field.ndim; ++axis) {
    const int64_t extent = field.shape[axis];
    // Division instead of multiplication: the product of wrong extents may overflow.
    if (extent < 1 || extent > kLargestSampleBytes / bytes)
      return "field '" + name + "' has " + std::to_string(extent) + " elements along axis " + std::to_string(axis);
    bytes *= extent;
  }
  if (field.channel_axis < -1 || field.channel_axis >= field.ndim) {
    return "field '" + name + "' has channel axis " + std::to_string(field.channel_axis) + " of " +
           std::to_string(field.ndim) + " axes";
  }
  if (!std::isfinite(field.sample_rate_hz) || field.sample_rate_hz < 0.0)
    return "field '" + name + "' has no usable sample rate";
  return flaw_of_channels(field, name);
}

}  // namespace headroom
