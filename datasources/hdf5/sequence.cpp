#include "sequence.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "field.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "integers.hpp"
#include "labels.hpp"

namespace hdf5_source {

namespace {

// A missing dataset is the data's, not an option's; the host says what is there instead.
template <class Ask>
auto asked(const FieldSettings& field, const Ask& ask) {
  try {
    return ask();
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT && problem.status() != HR_NOT_FOUND) throw;
    throw sdk::Error(HR_DATA_CORRUPT, "field '" + field.name + "': " + problem.what());
  }
}

// Whether `value` is the same in `dtype`.
bool holds(DLDataType dtype, const sdk::Attribute& value) {
  if (dtype.code == kDLFloat) return true;
  if (value.type != HR_I64) return false;
  if (dtype.code == kDLBool) return value.i64 == 0 || value.i64 == 1;
  const bool is_signed = dtype.code == kDLInt;
  const int bits = dtype.bits - (is_signed ? 1 : 0);
  const int64_t most = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  return value.i64 <= most && value.i64 >= (is_signed ? -most - 1 : 0);
}

Finding find_attribute(const sdk::Host& host, const Settings& settings, const Sequence& sequence,
                       const FieldSettings& field) {
  const auto value =
      asked(field, [&] { return host.attribute(sequence.file, sequence.object(field.dataset), field.attribute); });
  if (!value) refuse(sequence, field, "has no attribute '" + field.attribute + "'");
  if (value->type == HR_STRING)
    refuse(sequence, field, "has a string as attribute '" + field.attribute + "'; a number is needed");
  const DLDataType stored = value->type == HR_I64 ? sdk::i64 : sdk::f64;
  const DLDataType dtype = delivered_dtype(field, stored);
  const std::string found = "has " + (std::ostringstream() << value->f64).str() + " as attribute '" + field.attribute;
  if (!holds(dtype, *value))
    refuse(sequence, field, found + "', which " + dtype_name(dtype) + " does not hold; ask for another dtype");
  const bool finite =
      sdk::same_type(dtype, sdk::f32) ? std::isfinite(static_cast<float>(value->f64)) : std::isfinite(value->f64);
  if (settings.check_finite && !finite) {
    refuse(
        sequence, field,
        found + "', which is NaN or infinite in " + dtype_name(dtype) + "; mend the data, or set check_finite = false");
  }
  return {{}, {}, stored, *value};
}

uint32_t member_of(const sdk::Array& array, const Sequence& sequence, const FieldSettings& field) {
  const auto& members = array.info().members;
  std::vector<std::string> names;
  for (const sdk::ArrayMember& member : members) names.push_back(member.name);
  if (field.member.empty()) {
    if (members.empty()) return HR_WHOLE;
    refuse(sequence, field, "holds records with the members " + sdk::listing(names) + "; name one as member");
  }
  if (members.empty())
    refuse(sequence, field, "is a plain array without members; take out member = \"" + field.member + "\"");
  if (const auto i = array.find_member(field.member)) return *i;
  refuse(sequence, field, "has no member '" + field.member + "'; its records hold " + sdk::listing(names));
}

// One length for each row, of rows that have an axis.
void require_lengths(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                     const std::vector<uint64_t>& shape) {
  const std::string object = sequence.object(field.lengths);
  const sdk::Array array = open_integers(host, sequence.file, object, "field '" + field.name + "': lengths");
  const uint64_t count = array.info().shape[0];
  if (shape.size() < 2)
    refuse(sequence, field, "has shape " + sdk::shape_text(shape) + "; lengths tell how much of a row's values counts");
  if (count == shape[0]) return;
  refuse(sequence, field,
         "has " + std::to_string(shape[0]) + " rows, but its lengths '" + object + "' are " + std::to_string(count) +
             "; give one for each row");
}

// Classes, and the values of a dataset of strings: these are kept.
void take_strings(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                  const sdk::ArrayInfo& info, bool is_plain, Finding& finding) {
  finding.classes = field.classes;
  if (!field.classes_dataset.empty()) {
    finding.classes = asked(field, [&] { return host.strings(sequence.file, sequence.object(field.classes_dataset)); });
  }
  require_classes(field, finding.classes);
  if (field.text_bytes > 0) {
    finding.texts = read_texts(host, sequence, field, info);
    finding.is_text = true;
    finding.stored = sdk::u8;
    finding.shape.push_back(field.text_bytes);
  } else if (finding.stored.bits == 0 && is_plain) {
    finding.labels = read_labels(host, sequence, field, info, finding.classes);
    finding.is_label = true;
    finding.stored = sdk::i64;
  }
}

Finding find_dataset(const sdk::Host& host, const Settings& settings, const Sequence& sequence,
                     const FieldSettings& field) {
  const sdk::Array array =
      asked(field, [&] { return sdk::Array(host, sequence.file, sequence.object(field.dataset)); });
  const sdk::ArrayInfo& info = array.info();
  const uint32_t member = member_of(array, sequence, field);
  Finding finding{info.shape, {}, info.dtype, {}};
  if (member != HR_WHOLE) {
    finding.member_shape = info.members[member].shape;
    finding.stored = info.members[member].dtype;
  }
  take_strings(host, sequence, field, info, member == HR_WHOLE, finding);
  if (finding.stored.bits == 0) refuse(sequence, field, "does not hold numbers; integers, floats and bool can be read");
  if (field.rows != Rows::all && static_cast<std::size_t>(field.axis) >= info.shape.size()) {
    refuse(sequence, field,
           "has shape " + sdk::shape_text(info.shape) + " and no axis " + std::to_string(field.axis) +
               " to count rows along");
  }
  // An empty box: the host says whether it converts. A dataset without axes has one element, which is read.
  std::byte nothing[8] = {};
  std::vector<std::byte> record;
  void* room = nothing;
  if (info.shape.empty()) {
    uint64_t values = 8;
    for (const uint64_t extent : finding.member_shape) values *= extent;
    record.resize(values);
    room = record.data();
  }
  const std::vector<uint64_t> none(info.shape.size(), 0);
  const hr_array_target target{member, delivered_dtype(field, finding.stored), room, 0};
  const bool is_stored = !finding.is_label && !finding.is_text;
  if (is_stored) asked(field, [&] { return array.read_box(none, none, {&target, 1}), true; });
  // Rows may be missing: such a sequence is too short for a sample.
  std::vector<uint64_t> needed = info.shape;
  if (field.rows != Rows::all) needed[row_axis(settings, field, needed.size())] = 1;
  if (std::ranges::find(needed, 0u) != needed.end()) {
    refuse(
        sequence, field,
        "is empty: its shape is " + sdk::shape_text(info.shape) + "; take the field or the file out, or mend the file");
  }
  if (!field.lengths.empty()) require_lengths(host, sequence, field, info.shape);
  return finding;
}

}  // namespace

std::string Sequence::object(const std::string& dataset) const {
  std::string path = dataset.starts_with("/") ? dataset : (group == "/" ? "/" : group + "/") + dataset;
  if (const std::size_t star = path.find('*'); star != std::string::npos && !number.empty())
    path.replace(star, 1, number);
  return path;
}

std::string Sequence::name(const std::filesystem::path& folder) const {
  const std::filesystem::path below = file == folder ? file.filename() : file.lexically_relative(folder);
  const std::string stem = (below.parent_path() / below.stem()).string();
  return stem + (group == "/" ? "" : ":" + group) + (number.empty() ? "" : ":" + number);
}

std::vector<std::string> numbers_of(const sdk::Host& host, const Settings& settings, const std::filesystem::path& file,
                                    const std::string& group) {
  const auto field = std::ranges::find_if(
      settings.fields, [](const FieldSettings& one) { return one.dataset.find('*') != std::string::npos; });
  if (field == settings.fields.end()) return {""};
  Sequence unnumbered;
  unnumbered.file = file;
  unnumbered.group = group;
  const std::string pattern = unnumbered.object(field->dataset);
  const std::size_t slash = pattern.find_last_of('/'), star = pattern.find('*');
  const std::string before = pattern.substr(slash + 1, star - slash - 1), after = pattern.substr(star + 1);
  std::vector<std::string> numbers;
  const auto entries =
      asked(*field, [&] { return host.list_arrays(file, slash == 0 ? "/" : pattern.substr(0, slash)); });
  for (const sdk::Entry& entry : entries) {
    const std::string& name = entry.name;
    const bool matches =
        name.size() > before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
    if (matches && !entry.is_container)
      numbers.push_back(name.substr(before.size(), name.size() - before.size() - after.size()));
  }
  if (numbers.empty()) refuse(unnumbered, *field, "matches no dataset; leave the file out, or mend the pattern");
  return numbers;
}

std::string place_of(const Sequence& sequence, const FieldSettings& field) {
  return "'" + sequence.object(field.dataset) + "' of " + sequence.file.string() + " (field '" + field.name + "')";
}

void refuse(const Sequence& sequence, const FieldSettings& field, const std::string& sentence) {
  throw sdk::Error(HR_DATA_CORRUPT, place_of(sequence, field) + " " + sentence);
}

std::size_t row_axis(const Settings& settings, const FieldSettings& field, std::size_t axes) {
  const auto axis = static_cast<std::size_t>(field.axis);
  return settings.matlab ? axes - 1 - axis : axis;
}

std::vector<Finding> examine(const sdk::Host& host, const Settings& settings, Sequence& sequence) {
  std::vector<Finding> findings;
  const FieldSettings* shortest = nullptr;
  const FieldSettings* longest = nullptr;
  uint64_t least = 0, most = 0;
  sequence.attributes.clear();
  sequence.labels.clear();
  sequence.texts.clear();
  for (const FieldSettings& field : settings.fields) {
    const bool is_attribute = !field.attribute.empty();
    Finding& finding = findings.emplace_back(is_attribute ? find_attribute(host, settings, sequence, field)
                                                          : find_dataset(host, settings, sequence, field));
    if (is_attribute) {
      sequence.attributes.resize(settings.fields.size());
      sequence.attributes[findings.size() - 1] = finding.attribute;
    }
    if (finding.is_label) {
      sequence.labels.resize(settings.fields.size());
      sequence.labels[findings.size() - 1] = std::move(finding.labels);
    }
    if (finding.is_text) {
      sequence.texts.resize(settings.fields.size());
      sequence.texts[findings.size() - 1] = std::move(finding.texts);
    }
    if (field.rows == Rows::all) continue;
    const uint64_t rows = finding.shape[row_axis(settings, field, finding.shape.size())];
    if (shortest == nullptr || rows < least) shortest = &field, least = rows;
    if (longest == nullptr || rows > most) longest = &field, most = rows;
  }
  sequence.rows = shortest == nullptr ? 1 : least;
  if (least != most) {
    sequence.uneven = place_of(sequence, *shortest) + " has " + std::to_string(least) + " rows, " +
                      sequence.object(longest->dataset) + " has " + std::to_string(most);
  }
  return findings;
}

}  // namespace hdf5_source
