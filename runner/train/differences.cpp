#include "train/differences.hpp"

#include <map>
#include <set>
#include <toml++/toml.h>

#include "config/identity.hpp"
#include "config/keys.hpp"
#include "config/literals.hpp"
#include "record/run_folder.hpp"
#include "train/compute.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

// They say when a run ends, and nothing about its steps.
bool is_length(const std::string& name) {
  const Key* key = find_key(name);
  return key != nullptr && key->effect.changes == Changes::length;
}

const std::map<std::string, std::string> option_tables = {{"model_options", "model.options"},
                                                          {"data_options", "data.options"},
                                                          {"optimizer_options", "train.optimizer_options"}};

std::string text_of(const Json& value) { return value.is_null() ? "not set" : json_text(value); }

class Comparison {
 public:
  explicit Comparison(Differences& found) : found_(found) {}

  // Of what Setup::mathematics() says.
  void compare(const Json& then, const Json& now) {
    std::set<std::string> names;
    // Of both: an entry may be on one side only.
    for (const Json* side : {&then, &now}) {
      for (const auto& [name, value] : side->items()) names.insert(name);
    }
    for (const std::string& name : names) {
      const Json was = then.value(name, Json()), is = now.value(name, Json());
      if (const auto table = option_tables.find(name); table != option_tables.end()) {
        compare_options(table->second, was, is);
      } else if (name == "model_files") {
        compare_files(was, is);
      } else {
        compare_entry(name, was, is);
      }
    }
  }

 private:
  void add(const std::string& key, const std::string& was, const std::string& is) {
    if (was != is) (is_length(key) ? found_.length : found_.mathematics).push_back(key + " was " + was + ", is " + is);
  }

  void compare_entry(const std::string& name, const Json& was, const Json& is) {
    const std::vector<std::string> keys = keys_of_entry(name);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto element = [&](const Json& value) {
        // An entry of one key is its value; one of several is a list in the order of the keys.
        if (keys.size() == 1) return text_of(value);
        return text_of(value.is_array() && i < value.size() ? value[i] : Json());
      };
      add(keys[i], element(was), element(is));
    }
  }

  // By the digests of their content.
  void compare_files(const Json& was, const Json& is) {
    std::set<std::string> names;
    for (const Json* side : {&was, &is}) {
      for (const auto& [name, digest] : side->items()) names.insert(name);
    }
    for (const std::string& name : names) {
      const auto digest = [&](const Json& side) {
        return side.is_object() ? side.value(name, "not there") : "not there";
      };
      add("the model's file " + name, digest(was), digest(is));
    }
  }

  using Settings = std::map<std::string, std::string>;
  static void list(const toml::table& table, const std::string& prefix, Settings& settings) {
    for (const auto& [key, value] : table) {
      const std::string path = prefix + "." + key_literal(key.str());
      if (const toml::table* inner = value.as_table()) {
        list(*inner, path, settings);
      } else {
        settings[path] = literal(value);
      }
    }
  }

  // Options are written as TOML; there are none of an optimizer that is one of ours.
  void compare_options(const std::string& prefix, const Json& was, const Json& is) {
    Settings before, after;
    if (!was.is_null()) list(toml::parse(was.get<std::string>()), prefix, before);
    if (!is.is_null()) list(toml::parse(is.get<std::string>()), prefix, after);
    Settings all = before;
    all.insert(after.begin(), after.end());
    for (const auto& [key, value] : all) {
      add(key, before.contains(key) ? before[key] : "not set", after.contains(key) ? after[key] : "not set");
    }
  }

  Differences& found_;
};

// One that adapts is restored, so it is no difference.
Json micro_batch_of(const Setup& setup) {
  const MicroBatch micro_batch = setup.micro_batch();
  return micro_batch.adapts() ? Json("auto") : Json(micro_batch.size());
}

}  // namespace

Json surroundings(const Setup& setup) {
  Json plugins = {{setup.data.model_library.id(), setup.data.model_library.build()},
                  {setup.data.source_library.id(), setup.data.source_library.build()}};
  if (setup.data.optimizer) plugins[setup.data.optimizer->id()] = setup.data.optimizer->library().build();
  return {{"threads", setup.data.threads},
          {"ranks", setup.data.ranks().count},
          {"processor", processor_text()},
          {"matmul", setup.matmul.name()},
          {"micro_batch", micro_batch_of(setup)},
          {"libtorch", TORCH_VERSION},
          {"content_id", setup.data.content_id},
          {"plugins", plugins},
          {"device", setup.device.str()},
          {"precision", setup.data.experiment.train.precision},
          {"identity", setup.identity()},
          {"mathematics", setup.mathematics()}};
}

Differences differences_from(const LoadedCheckpoint& checkpoint, const Setup& setup) {
  Differences found;
  try {
    Json then = checkpoint.json.at("surroundings");
    if (!then.contains("matmul")) then["matmul"] = "ieee";  // an earlier build's
    const Json now = surroundings(setup);
    // A checkpoint of an earlier build has the hash alone.
    const bool by_key = then.contains("mathematics");
    const bool draws = (setup.model->capabilities() & HR_RNG_GENERATOR) != 0;  // other numbers for other pieces
    for (const auto& [key, value] : then.items()) {
      const bool mathematical = key == "content_id" || key == "precision" || key == "identity" || key == "mathematics";
      // What the mathematics hold is compared by key below, and plugins by their builds.
      if (now.at(key) == value || key == "plugins" || (mathematical && by_key)) continue;
      (mathematical || (key == "micro_batch" && draws) ? found.mathematics : found.rounding)
          .push_back(key + " was " + json_text(value) + ", is " + json_text(now.at(key)));
    }
    for (const auto& [id, build] : now.at("plugins").items()) {
      // A plugin that is not listed counts as the same build.
      if (then.value("plugins", Json::object()).value(id, build) != build)
        found.code.push_back("plugin '" + id + "' was rebuilt since");
    }
    if (by_key) Comparison(found).compare(then.at("mathematics"), now.at("mathematics"));
  } catch (const Json::exception& problem) {
    throw Error(Exit::bad_input, "checkpoint",
                checkpoint.state.path().parent_path().string() + "/checkpoint.json: " + problem.what());
  } catch (const toml::parse_error& problem) {
    throw Error(Exit::bad_input, "checkpoint",
                checkpoint.state.path().parent_path().string() + "/checkpoint.json: options: " + problem.what());
  }
  return found;
}

void require_same_mathematics(const Differences& differences, const std::string& run) {
  if (differences.mathematics.empty()) return;
  std::string list;
  for (const std::string& difference : differences.mathematics) list += (list.empty() ? "" : "; ") + difference;
  throw Error(Exit::bad_input, "resume",
              run + " was trained with other settings: " + list +
                  "; resume it with those, begin a new run, or go on with the new ones with --changed");
}

}  // namespace headroom
