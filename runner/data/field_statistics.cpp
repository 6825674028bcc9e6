#include "data/field_statistics.hpp"

#include <nlohmann/json.hpp>

#include "error.hpp"

namespace headroom {

nlohmann::json statistics_to_json(std::span<const FieldStatistics> statistics) {
  // nlohmann::json writes as many digits as a double needs to be read back to the bit.
  nlohmann::json all = nlohmann::json::array();
  for (const FieldStatistics& field : statistics) {
    all.push_back({{"field", field.field}, {"mean", field.mean}, {"std", field.std}, {"samples", field.samples}});
  }
  return all;
}

std::vector<FieldStatistics> statistics_from_json(const nlohmann::json& json) {
  std::vector<FieldStatistics> all;
  try {
    for (const nlohmann::json& field : json) {
      FieldStatistics statistics{field.at("field"), field.at("mean"), field.at("std"), field.at("samples")};
      if (statistics.mean.size() != statistics.std.size())
        throw Error(Exit::bad_input, "data", "the normaliser's mean and std differ in length");
      all.push_back(std::move(statistics));
    }
  } catch (const nlohmann::json::exception& problem) {
    throw Error(Exit::bad_input, "data", std::string("the normaliser cannot be read: ") + problem.what());
  }
  return all;
}

std::vector<Channel> measured_channels(const Field& field, std::span<const FieldStatistics> all, int axis) {
  std::vector<Channel> channels = field.channels;
  channels.resize(axis < 0 ? 1 : static_cast<size_t>(field.shape[static_cast<size_t>(axis)]));
  for (const FieldStatistics& statistics : all) {
    if (statistics.field != field.name) continue;
    for (size_t c = 0; c < channels.size(); ++c) {
      // Without a channel axis the statistics are one mean and one deviation for all.
      const size_t kept = field.channel_axis == axis ? c : 0;
      channels[c].mean += statistics.mean.at(kept) * channels[c].std;
      channels[c].std *= statistics.std.at(kept);
    }
  }
  return channels;
}

std::vector<int64_t> beside_batch(const Field& field) {
  std::vector<int64_t> shape(field.shape.size() + 1, 1);
  if (field.channel_axis < 0) return shape;
  const auto axis = static_cast<size_t>(field.channel_axis);
  shape[axis + 1] = field.shape[axis];
  return shape;
}

std::vector<Field> delivered_fields(std::vector<Field> fields, bool standardises) {
  for (Field& field : fields) {
    if (!field.normalize) continue;
    field.normalize = standardises;
    if (!standardises) continue;
    field.unit = "";
    for (Channel& channel : field.channels) channel.unit = "";
  }
  return fields;
}

}  // namespace headroom
