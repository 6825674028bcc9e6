#include "train/class_balance.hpp"

#include <algorithm>

#include "data/class_counts.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

constexpr uint64_t most_looked_at = 10'000;
constexpr size_t most_classes_named = 5;

std::string class_text(const ClassInfo& classes, size_t c) {
  return classes.names.empty() ? std::to_string(c) : "'" + classes.names[c] + "'";
}

Json class_counts_json(const ClassCounts& counts, const Split& split) {
  return {{"samples", counts.samples}, {"of", split.length()}, {"counts", counts.counts}};
}

// "3, 5 and 20 more"
std::string classes_text(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most_classes_named); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > most_classes_named
             ? text + " and " + std::to_string(names.size() - most_classes_named) + " more"
             : text;
}

// A class that is never trained on and yet asked for.
std::string missing_line(const ClassInfo& classes, const ClassCounts& train, const ClassCounts& val) {
  std::vector<std::string> missing;
  for (size_t c = 0; c < train.counts.size(); ++c) {
    if (train.counts[c] == 0 && val.counts[c] > 0) missing.push_back(class_text(classes, c));
  }
  if (missing.empty()) return "";
  const std::string where =
      train.whole ? "the training split" : "the " + std::to_string(train.samples) + " training samples looked at";
  return "classes of field '" + classes.field + "' that validation has and " + where +
         " has not: " + classes_text(missing);
}

std::string others_line(const ClassInfo& classes, const std::string& split, const ClassCounts& counts) {
  if (counts.others == 0) return "";
  return std::to_string(counts.others) + " values of field '" + classes.field + "' in split '" + split +
         "' are none of the model's " + std::to_string(classes.count) + " classes (0 to " +
         std::to_string(classes.count - 1) + "): metrics leave them out";
}

// "classes of field 'label' in 750 training samples: 'circle' 500, 'star' 250"
std::string counted_line(const ClassInfo& classes, const ClassCounts& counts) {
  std::vector<std::string> list;
  for (size_t c = 0; c < counts.counts.size(); ++c)
    list.push_back(class_text(classes, c) + " " + std::to_string(counts.counts[c]));
  return "classes of field '" + classes.field + "' in " + std::to_string(counts.samples) +
         " training samples: " + classes_text(list);
}

}  // namespace

ClassBalance class_balance(const Setup& setup) {
  const Source& source = *setup.data.source;
  const Splits& splits = setup.data.splits;
  ClassBalance balance;
  for (const OutputPair& pair : setup.output_pairs) {
    if (!pair.classes) continue;
    const auto field = field_of_classes(source, *pair.classes);
    if (!field) continue;
    const ClassCounts train = count_classes(source, splits.train, *field, pair.classes->count, most_looked_at),
                      val = count_classes(source, splits.val, *field, pair.classes->count, most_looked_at);
    Json& json = balance.json[pair.name] = {{"field", pair.classes->field},
                                            {"train", class_counts_json(train, splits.train)},
                                            {"val", class_counts_json(val, splits.val)}};
    if (!pair.classes->names.empty()) json["names"] = pair.classes->names;
    for (std::string line : {missing_line(*pair.classes, train, val), others_line(*pair.classes, "train", train),
                             others_line(*pair.classes, "val", val)}) {
      if (!line.empty()) balance.warnings.push_back(std::move(line));
    }
  }
  return balance;
}

void balance_classes(const Setup& setup, const std::function<void(const std::string& line)>& say) {
  const Source& source = *setup.data.source;
  for (const OutputPair& pair : setup.output_pairs) {
    if (!pair.classes || !pair.classes->counted) continue;
    const auto field = field_of_classes(source, *pair.classes);
    if (!field) {
      throw Error(Exit::bad_input, setup.model->id(),
                  "the model wants the classes of the field '" + pair.classes->field +
                      "' counted, and the data source gives no such field");
    }
    const ClassCounts counts = count_classes(source, setup.data.splits.train, *field, pair.classes->count);
    say(counted_line(*pair.classes, counts));
    setup.model->balance(pair.prediction, counts.counts);
  }
}

}  // namespace headroom
