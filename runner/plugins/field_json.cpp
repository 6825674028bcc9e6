#include "plugins/field_json.hpp"

#include <nlohmann/json.hpp>

#include "plugins/field_checks.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

Error unreadable_fields(const std::string& what) {
  return Error(Exit::bad_input, "fields", "the description of the fields cannot be read: " + what);
}

// The type that dtype_name() calls so.
DLDataType dtype_named(const std::string& name) {
  constexpr DLDataType bf16{kDLBfloat, 16, 1};
  for (const DLDataType dtype : {sdk::f32, sdk::f64, sdk::f16, bf16, sdk::i8, sdk::i16, sdk::i32, sdk::i64, sdk::u8,
                                 sdk::u16, sdk::u32, sdk::u64, sdk::boolean})
    if (dtype_name(dtype) == name) return dtype;
  throw unreadable_fields("'" + name + "' is not a number type that a field may have");
}

Json channels_to_json(const std::vector<Channel>& channels) {
  Json all = Json::array();
  for (const Channel& channel : channels)
    all.push_back({{"name", channel.name}, {"unit", channel.unit}, {"mean", channel.mean}, {"std", channel.std}});
  return all;
}

Field field_from_json(const Json& json, uint32_t i) {
  Field field;
  field.name = json.at("name");
  field.unit = json.at("unit");
  field.dtype = dtype_named(json.at("dtype"));
  json.at("shape").get_to(field.shape);
  json.at("axes").get_to(field.axes);
  field.sample_rate_hz = json.at("sample_rate_hz");
  field.channel_axis = json.at("channel_axis");
  field.normalize = json.at("normalize");
  for (const Json& channel : json.at("channels"))
    field.channels.push_back({channel.at("name"), channel.at("unit"), channel.at("mean"), channel.at("std")});
  if (field.axes.size() != field.shape.size())
    throw unreadable_fields("'" + field.name + "' has " + std::to_string(field.shape.size()) + " extents and " +
                            std::to_string(field.axes.size()) + " axes");
  std::vector<hr_channel> channels;
  if (const std::string flaw = flaw_of_field(field.native(channels), i); !flaw.empty()) throw unreadable_fields(flaw);
  return field;
}

}  // namespace

Json fields_to_json(const std::vector<Field>& fields) {
  Json all = Json::array();
  for (const Field& field : fields) {
    all.push_back({{"name", field.name},
                   {"unit", field.unit},
                   {"dtype", dtype_name(field.dtype)},
                   {"shape", field.shape},
                   {"axes", field.axes},
                   {"sample_rate_hz", field.sample_rate_hz},
                   {"channel_axis", field.channel_axis},
                   {"normalize", field.normalize},
                   {"channels", channels_to_json(field.channels)}});
  }
  return all;
}

std::vector<Field> fields_from_json(const Json& json) {
  std::vector<Field> fields;
  try {
    for (const Json& field : json) fields.push_back(field_from_json(field, static_cast<uint32_t>(fields.size())));
  } catch (const Json::exception& problem) {
    throw unreadable_fields(problem.what());
  }
  return fields;
}

}  // namespace headroom
