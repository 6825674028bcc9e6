#include <limits>
#include <map>

#include "error.hpp"
#include "plugins/source.hpp"

namespace headroom {

int64_t Field::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t Field::bytes() const { return elements() * dtype.bits * dtype.lanes / 8; }

Field Field::from(const hr_field& native) {
  Field field;
  if (native.name != nullptr) field.name = native.name;
  if (native.unit != nullptr) field.unit = native.unit;
  field.dtype = native.dtype;
  for (int32_t axis = 0; axis < native.ndim && axis < HR_MAX_DIMS; ++axis) {
    field.shape.push_back(native.shape[axis]);
    field.axes.emplace_back(native.axes[axis] != nullptr ? native.axes[axis] : "");
  }
  field.sample_rate_hz = native.sample_rate_hz;
  field.channel_axis = native.channel_axis;
  field.normalize = (native.flags & HR_FIELD_NORMALIZE) != 0;
  if (!HR_HAS(&native, channel_count) || native.channels == nullptr) return field;
  const char* bytes = reinterpret_cast<const char*>(native.channels);
  for (uint64_t i = 0; i < native.channel_count; ++i) {
    const auto& channel = *reinterpret_cast<const hr_channel*>(bytes + i * native.channels->struct_size);
    field.channels.push_back({channel.name != nullptr ? channel.name : "", channel.unit != nullptr ? channel.unit : "",
                              channel.mean, channel.std});
  }
  return field;
}

hr_field Field::native(std::vector<hr_channel>& native_channels) const {
  hr_field result{};
  result.struct_size = sizeof result;
  result.flags = normalize ? HR_FIELD_NORMALIZE : 0u;
  result.name = name.c_str();
  result.dtype = dtype;
  result.ndim = static_cast<int32_t>(shape.size());
  for (std::size_t axis = 0; axis < shape.size() && axis < HR_MAX_DIMS; ++axis) {
    result.shape[axis] = shape[axis];
    if (axis < axes.size() && !axes[axis].empty()) result.axes[axis] = axes[axis].c_str();
  }
  result.unit = unit.empty() ? nullptr : unit.c_str();
  result.sample_rate_hz = sample_rate_hz;
  result.channel_axis = channel_axis;
  native_channels.clear();
  for (const Channel& channel : channels) {
    native_channels.push_back({sizeof(hr_channel), 0, channel.name.c_str(),
                               channel.unit.empty() ? nullptr : channel.unit.c_str(), channel.mean, channel.std});
  }
  result.channels = native_channels.empty() ? nullptr : native_channels.data();
  result.channel_count = native_channels.size();
  return result;
}

std::string dtype_name(DLDataType dtype) {
  static const std::map<int, std::string> kinds = {{kDLInt, "int"},       {kDLUInt, "uint"},       {kDLFloat, "float"},
                                                   {kDLBfloat, "bfloat"}, {kDLComplex, "complex"}, {kDLBool, "bool"}};
  const auto kind = kinds.find(dtype.code);
  std::string name = kind != kinds.end() ? kind->second : "type" + std::to_string(dtype.code) + "_";
  if (dtype.code != kDLBool || dtype.bits != 8) name += std::to_string(dtype.bits);
  return dtype.lanes == 1 ? name : name + "x" + std::to_string(dtype.lanes);
}

}  // namespace headroom
