#include "labels.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "headroom/sdk/shape_text.hpp"

namespace hdf5_source {

namespace {

// Ready to be pasted into the experiment: in byte order, the first few where there are many.
std::string found_text(const std::vector<std::string>& strings) {
  constexpr std::size_t most = 12;
  const std::set<std::string> different(strings.begin(), strings.end());
  std::string text = "classes = [";
  std::size_t count = 0;
  for (const std::string& one : different) {
    if (count == most) break;
    text += (count++ > 0 ? ", \"" : "\"") + one + "\"";
  }
  if (different.size() <= most) return text + "]";
  return text + ", ...] of the " + std::to_string(different.size()) + " that differ";
}

std::vector<std::string> strings_of(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                    const sdk::ArrayInfo& info) {
  std::vector<std::string> strings;
  try {
    strings = host.strings(sequence.file, sequence.object(field.dataset));
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT) throw;
    refuse(sequence, field,
           "holds neither numbers nor strings; write lists of variable length end to end and name their ends as "
           "episode_ends, or pad them and give lengths");
  }
  if (info.shape.size() != 1)
    refuse(sequence, field, "has shape " + sdk::shape_text(info.shape) + "; strings are read from one axis");
  return strings;
}

}  // namespace

void require_classes(const FieldSettings& field, std::vector<std::string> classes) {
  const auto fail = [&](const std::string& sentence) {
    throw sdk::Error(field.classes_dataset.empty() ? HR_INVALID_ARGUMENT : HR_DATA_CORRUPT,
                     "field '" + field.name + "': " + sentence);
  };
  if (classes.size() > HR_MOST_CLASSES) {
    fail("it has " + std::to_string(classes.size()) + " classes; at most " + std::to_string(HR_MOST_CLASSES) +
         " are told apart");
  }
  std::ranges::sort(classes);
  const auto twice = std::ranges::adjacent_find(classes);
  if (twice != classes.end()) fail("'" + *twice + "' stands twice among its classes");
}

std::vector<int32_t> read_labels(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                 const sdk::ArrayInfo& info, const std::vector<std::string>& classes) {
  const std::vector<std::string> strings = strings_of(host, sequence, field, info);
  if (classes.empty())
    refuse(sequence, field, "holds strings; give them an order, as " + found_text(strings) + ", or set text_bytes");
  std::map<std::string_view, int32_t> number_of;
  for (const std::string& one : classes) number_of.emplace(one, static_cast<int32_t>(number_of.size()));
  std::vector<int32_t> labels;
  labels.reserve(strings.size());
  for (std::size_t row = 0; row < strings.size(); ++row) {
    const auto found = number_of.find(strings[row]);
    if (found == number_of.end()) {
      refuse(sequence, field,
             "has '" + strings[row] + "' in row " + std::to_string(row) + ", which is none of its " +
                 std::to_string(classes.size()) + " classes; add it to them, or mend the file");
    }
    labels.push_back(found->second);
  }
  return labels;
}

std::vector<std::string> read_texts(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field,
                                    const sdk::ArrayInfo& info) {
  if (info.dtype.bits != 0) refuse(sequence, field, "holds numbers; text_bytes is for strings");
  std::vector<std::string> texts = strings_of(host, sequence, field, info);
  uint64_t cut = 0, longest = 0;
  for (std::string& text : texts) {
    longest = std::max<uint64_t>(longest, text.size());
    if (text.size() <= field.text_bytes) continue;
    ++cut;
    text.resize(field.text_bytes);
  }
  if (cut > 0) {
    host.warn(place_of(sequence, field) + ": " + std::to_string(cut) + " of " + std::to_string(texts.size()) +
              " strings are cut at text_bytes = " + std::to_string(field.text_bytes) + "; the longest has " +
              std::to_string(longest) + " bytes");
  }
  return texts;
}

}  // namespace hdf5_source
