#include "channels.hpp"

#include <optional>

namespace hdf5_source {

namespace {

// Of the field's dataset, else of the nearest group above it.
std::optional<std::vector<std::string>> attribute_above(const sdk::Host& host, const Sequence& sequence,
                                                        const FieldSettings& field, const std::string& attribute) {
  for (std::string object = sequence.object(field.dataset);;) {
    if (const auto names = host.attribute_names(sequence.file, object, attribute)) return *names;
    if (object == "/") return std::nullopt;
    object.resize(object.find_last_of('/'));
    if (object.empty()) object = "/";
  }
}

std::vector<std::string> required_above(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                        const std::string& attribute) {
  if (const auto names = attribute_above(host, sequence, field, attribute)) return *names;
  refuse(sequence, field, "has no attribute '" + attribute + "', nor has a group above it");
}

}  // namespace

std::vector<sdk::Channel> channels_of(const sdk::Host& host, const Sequence& sequence, const FieldLayout& field) {
  const FieldSettings& own = field.settings;
  const std::string what = place_of(sequence, own) + ": ";
  if (field.shape.empty()) sdk::invalid(what + "a sample is one number and has no channels to name");
  const auto last = static_cast<int64_t>(field.shape.size()) - 1;
  const auto count = static_cast<std::size_t>(field.shape[static_cast<std::size_t>(own.channel_axis.value_or(last))]);

  std::vector<std::string> names = own.channel_names, units = own.channel_units;
  if (!own.channel_names_attribute.empty()) names = required_above(host, sequence, own, own.channel_names_attribute);
  if (!own.channel_units_attribute.empty()) units = required_above(host, sequence, own, own.channel_units_attribute);
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

void require_same_channels(const sdk::Host& host, const Sequence& first, const Sequence& other,
                           const FieldSettings& field, const std::vector<sdk::Channel>& expected) {
  const auto require = [&](const std::string& attribute, std::string sdk::Channel::*text) {
    if (attribute.empty()) return;
    auto found = attribute_above(host, other, field, attribute);
    if (!found) return;
    if (found->size() == 1) found->assign(expected.size(), found->front());
    const std::string there = ", where " + first.file.string() + " has ";
    if (found->size() != expected.size())
      refuse(other, field,
             "has " + std::to_string(found->size()) + " in its attribute '" + attribute + "'" + there +
                 std::to_string(expected.size()) + "; mend the file");
    for (std::size_t c = 0; c < expected.size(); ++c) {
      if ((*found)[c] == expected[c].*text) continue;
      refuse(other, field,
             "has '" + (*found)[c] + "' as channel " + std::to_string(c) + " in its attribute '" + attribute + "'" +
                 there + "'" + expected[c].*text +
                 "'; all sequences need the same channels in the same order: mend the file");
    }
  };
  require(field.channel_names_attribute, &sdk::Channel::name);
  require(field.channel_units_attribute, &sdk::Channel::unit);
}

}  // namespace hdf5_source
