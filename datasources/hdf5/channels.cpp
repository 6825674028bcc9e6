#include "channels.hpp"

#include <optional>

namespace hdf5_source {

namespace {

// Of the field's dataset, else of the nearest group above it.
std::vector<std::string> attribute_above(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                         const std::string& attribute) {
  for (std::string object = sequence.object(field.dataset);;) {
    if (const auto names = host.attribute_names(sequence.file, object, attribute)) return *names;
    if (object == "/") break;
    object.resize(object.find_last_of('/'));
    if (object.empty()) object = "/";
  }
  throw sdk::Error(HR_DATA_CORRUPT,
                   place_of(sequence, field) + " has no attribute '" + attribute + "', nor has a group above it");
}

}  // namespace

std::vector<sdk::Channel> channels_of(const sdk::Host& host, const Sequence& sequence, const FieldLayout& field) {
  const FieldSettings& own = field.settings;
  const std::string what = place_of(sequence, own) + ": ";
  if (field.shape.empty()) sdk::invalid(what + "a sample is one number and has no channels to name");
  const auto last = static_cast<int64_t>(field.shape.size()) - 1;
  const auto count = static_cast<std::size_t>(field.shape[static_cast<std::size_t>(own.channel_axis.value_or(last))]);

  std::vector<std::string> names = own.channel_names, units = own.channel_units;
  if (!own.channel_names_attribute.empty()) names = attribute_above(host, sequence, own, own.channel_names_attribute);
  if (!own.channel_units_attribute.empty()) units = attribute_above(host, sequence, own, own.channel_units_attribute);
  if (units.size() == 1) units.assign(count, units.front());
  for (const auto& [list, kind] : {std::pair(&names, "names"), std::pair(&units, "units")}) {
    if (list->empty() || list->size() == count) continue;
    sdk::invalid(what + "there are " + std::to_string(list->size()) + " " + kind + " for " + std::to_string(count) +
                 " channels; give one for each");
  }
  std::vector<sdk::Channel> channels(count);
  for (std::size_t c = 0; c < count; ++c) {
    if (!names.empty()) channels[c].name = names[c];
    if (!units.empty()) channels[c].unit = units[c];
  }
  return channels;
}

}  // namespace hdf5_source
