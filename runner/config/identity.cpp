#include "config/identity.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

// Entries that are made of several keys, or of what the keys lead to.
std::string name_of_made(std::string_view entry) {
  if (entry == "content") return "the data's content (its id)";
  if (entry == "init") return "[init]";
  if (entry == "model_files") return "the model's files";
  if (entry == "matmul") return "experiment.matmul";  // where it changes more than rounding
  if (entry == "window") return "train.batch_size x train.gradient_accumulation_steps";
  if (entry == "plateau") {
    return "what the plateau schedule judges by (experiment.metric, experiment.better, eval.every_epochs, "
           "train.early_stop.min_delta, metrics)";
  }
  if (entry == "batch_size") return "train.batch_size";  // where the model couples samples
  return "";
}

// By the number of the element: a list comes out in the order that the table of keys gives.
using Elements = std::map<int, Json>;

template <class T>
void put(Elements& elements, int at, const T& value) {
  using Pair = std::tuple<const double&, const double&>;
  if constexpr (std::is_same_v<T, Pair>) {
    elements[at] = std::get<0>(value);
    elements[at + 1] = std::get<1>(value);
  } else if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
    // -1 stands for one that is not set, in all identities on disk too.
    elements[at] = value.value_or(-1);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, SchedulePoints>) {
    elements[at] = value;
  } else if constexpr (std::is_same_v<T, std::vector<ParameterGroup>>) {
    for (const ParameterGroup& group : value) {
      elements[at].push_back({{"match", group.match},
                              {"lr_scale", group.lr_scale},
                              {"weight_decay", group.weight_decay ? Json(*group.weight_decay) : Json()},
                              {"freeze", group.freeze}});
    }
  }  // tables, paths and lists are in entries that the run makes
}

// Of the keys whose entries are left out at these values.
std::map<std::string_view, std::string> defaults_left_out() {
  std::map<std::string_view, std::string> defaults;
  const Experiment experiment;
  each_field(experiment, [&](std::string_view path, const auto& field) {
    const Key& key = *find_key(path);
    if (key.effect.left_out_at_default) defaults[key.path] = value_literal(key, field);
  });
  return defaults;
}

}  // namespace

std::vector<std::string> keys_of_entry(std::string_view entry) {
  if (const std::string name = name_of_made(entry); !name.empty()) return {name};
  std::map<int, std::string> names;
  for (const Key& key : known_keys()) {
    if (entry.empty() || key.effect.entry != entry) continue;
    if (key.type == KeyType::betas) {
      names[key.effect.element] = key.path + "[0]";
      names[key.effect.element + 1] = key.path + "[1]";
    } else {
      names[key.effect.element] = key.path;
    }
  }
  if (names.empty()) return {std::string(entry)};
  std::vector<std::string> list;
  for (auto& [element, name] : names) list.push_back(std::move(name));
  return list;
}

Json identity_entries(const Experiment& experiment, const Json& made) {
  std::map<std::string, Elements> entries;
  const std::map<std::string_view, std::string> defaults = defaults_left_out();
  each_field(experiment, [&](std::string_view path, const auto& field) {
    const Key& key = *find_key(path);
    if (key.effect.entry.empty()) return;
    const auto found = defaults.find(key.path);
    if (found != defaults.end() && value_literal(key, field) == found->second) return;
    put(entries[std::string(key.effect.entry)], key.effect.element, field);
  });
  const TrainSection& train = experiment.train;
  entries["length"][2] = static_cast<int64_t>(train.drop_last);  // a number among numbers
  // Which samples make a step follows from the product alone.
  entries["window"] = {{0, train.batch_size * train.gradient_accumulation_steps}};

  Json json = Json::object();
  for (const auto& [entry, elements] : entries) {
    // experiment.metric is there without train.early_stop, whose entry it is in; it then decides nothing.
    if (!elements.contains(0)) continue;
    // An entry of one key is a value, one of several keys a list.
    if (keys_of_entry(entry).size() == 1) {
      json[entry] = elements.at(0);
    } else {
      for (const auto& [at, value] : elements) json[entry].push_back(value);
    }
  }
  for (const auto& [entry, value] : made.items()) {
    // null takes an entry out that decides nothing in this run.
    json.erase(entry);
    if (!value.is_null()) json[entry] = value;
  }
  return json;
}

}  // namespace headroom
