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
  field.channels = sdk::channels_of(native);
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
  sdk::put_channels(channels, native_channels, result);
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
