// Fields: the named arrays of a sample, as a source gives them and a model takes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "headroom/sdk/error.hpp"

namespace headroom::sdk {

inline constexpr DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1}, f16{kDLFloat, 16, 1};
inline constexpr DLDataType i8{kDLInt, 8, 1}, i16{kDLInt, 16, 1}, i32{kDLInt, 32, 1}, i64{kDLInt, 64, 1};
inline constexpr DLDataType u8{kDLUInt, 8, 1}, u16{kDLUInt, 16, 1}, u32{kDLUInt, 32, 1}, u64{kDLUInt, 64, 1};
inline constexpr DLDataType boolean{kDLBool, 8, 1};

inline bool same_type(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

// The dtype of a C++ type.
template <class T>
constexpr DLDataType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "arrays hold numbers");
  constexpr auto bits = static_cast<uint8_t>(8 * sizeof(T));
  if constexpr (std::is_same_v<T, bool>) return boolean;
  if constexpr (std::is_floating_point_v<T>) return {kDLFloat, bits, 1};
  return {static_cast<uint8_t>(std::is_signed_v<T> ? kDLInt : kDLUInt), bits, 1};
}

// One channel of a field that its source standardises itself: value = (measured - mean) / std.
struct Channel {
  std::string name = {};
  std::string unit = {};  // of what was measured; "": the field's
  double mean = 0.0, std = 1.0;
};

inline std::vector<Channel> channels_of(const hr_field& native) {
  std::vector<Channel> channels;
  if (native.channels == nullptr) return channels;
  const char* bytes = reinterpret_cast<const char*>(native.channels);
  for (uint64_t i = 0; i < native.channel_count; ++i) {
    const auto& channel = *reinterpret_cast<const hr_channel*>(bytes + i * native.channels->struct_size);
    channels.push_back({channel.name != nullptr ? channel.name : "", channel.unit != nullptr ? channel.unit : "",
                        channel.mean, channel.std});
  }
  return channels;
}

// Fills `native` from `channels` and lets `field` point to it; `field` then borrows from both.
inline void put_channels(const std::vector<Channel>& channels, std::vector<hr_channel>& native, hr_field& field) {
  native.clear();
  for (const Channel& channel : channels) {
    native.push_back({sizeof(hr_channel), 0, channel.name.c_str(),
                      channel.unit.empty() ? nullptr : channel.unit.c_str(), channel.mean, channel.std});
  }
  field.channels = native.empty() ? nullptr : native.data();
  field.channel_count = native.size();
}

// Written with designated initialisers:
//   Field{.name = "emg", .dtype = f32, .shape = {500, 16}, .axes = {"time", "channel"}, .unit = "V",
//         .sample_rate_hz = 2000.0, .channel_axis = 1, .normalize = true}
struct Field {
  std::string name = {};
  DLDataType dtype = f32;
  std::vector<int64_t> shape = {};     // of one sample, without the batch axis; {}: a scalar
  std::vector<std::string> axes = {};  // as many as shape, or fewer: the rest is unnamed
  std::string unit = {};
  double sample_rate_hz = 0.0;         // of the time axis; 0: none
  int channel_axis = -1;               // each place has its own statistics; -1: one for all
  bool normalize = false;              // the host may standardise it
  bool optional = false;               // the model works without this field
  std::vector<Channel> channels = {};  // along channel_axis; {}: unknown

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
  }

  // Borrows from *this and from `native_channels`, which it fills.
  hr_field native(std::vector<hr_channel>& native_channels) const {
    if (shape.size() > HR_MAX_DIMS) throw Error(HR_INTERNAL, "field '" + name + "' has more than 8 axes");
    hr_field field{};
    field.struct_size = sizeof field;
    field.flags = (normalize ? HR_FIELD_NORMALIZE : 0u) | (optional ? HR_FIELD_OPTIONAL : 0u);
    field.name = name.c_str();
    field.dtype = dtype;
    field.ndim = static_cast<int32_t>(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      field.shape[axis] = shape[axis];
      if (axis < axes.size() && !axes[axis].empty()) field.axes[axis] = axes[axis].c_str();
    }
    field.unit = unit.empty() ? nullptr : unit.c_str();
    field.sample_rate_hz = sample_rate_hz;
    field.channel_axis = channel_axis;
    put_channels(channels, native_channels, field);
    return field;
  }

  static Field from(const hr_field& native) {
    Field field{.name = native.name, .dtype = native.dtype};
    for (int32_t axis = 0; axis < native.ndim && axis < HR_MAX_DIMS; ++axis) {
      field.shape.push_back(native.shape[axis]);
      field.axes.emplace_back(native.axes[axis] != nullptr ? native.axes[axis] : "");
    }
    if (native.unit != nullptr) field.unit = native.unit;
    field.sample_rate_hz = native.sample_rate_hz;
    field.channel_axis = native.channel_axis;
    field.normalize = (native.flags & HR_FIELD_NORMALIZE) != 0;
    field.optional = (native.flags & HR_FIELD_OPTIONAL) != 0;
    field.channels = channels_of(native);
    return field;
  }
};

// The fields a source gives, in its order.
class Fields {
 public:
  explicit Fields(std::vector<Field> fields) : fields_(std::move(fields)) {}

  // Arrays of sized structs stride by the first element's struct_size: a newer host's elements are longer.
  Fields(const hr_field* fields, uint32_t count) {
    const char* bytes = reinterpret_cast<const char*>(fields);
    for (uint32_t i = 0; i < count; ++i) {
      fields_.push_back(Field::from(*reinterpret_cast<const hr_field*>(bytes + std::size_t{i} * fields->struct_size)));
    }
  }

  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  const Field& operator[](std::size_t i) const { return fields_[i]; }

  // NULL when the source does not give it.
  const Field* find(std::string_view name) const {
    for (const Field& field : fields_) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }

  // Throws HR_INVALID_ARGUMENT, naming what the source gives.
  const Field& at(std::string_view name) const {
    if (const Field* field = find(name)) return *field;
    std::vector<std::string> names;
    for (const Field& field : fields_) names.push_back(field.name);
    throw Error(HR_INVALID_ARGUMENT,
                "the model needs a field '" + std::string(name) + "'; the data source gives " + listing(names));
  }

 private:
  std::vector<Field> fields_;
};

}  // namespace headroom::sdk
