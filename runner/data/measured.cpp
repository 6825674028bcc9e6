#include "data/measured.hpp"

namespace headroom {

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
