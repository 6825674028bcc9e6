#include "config/rescue.hpp"

#include <algorithm>

#include "config/check_keys.hpp"
#include "config/document.hpp"
#include "config/keys.hpp"
#include "config/literals.hpp"

namespace headroom {

namespace {

constexpr std::string_view declaration = "keeps_mathematics", batch_size = "train.batch_size",
                           accumulation = "train.gradient_accumulation_steps";

void refuse_subject(const std::string& path, const toml::key& key) {
  if (!is_subject(path)) return;
  refuse(key.source(), "a rung of [rescue] cannot set " + path +
                           ": rungs change how a run is done, not which run it is; write it outside of [rescue]");
}

// From both spellings, "train.batch_size" in quotes and nested tables, to nested tables.
void put_all(toml::table& set, toml::table& written, const std::string& prefix) {
  for (auto&& [key, value] : written) {
    const std::string path = joined(prefix, key.str());
    // It says something of the rung, and is no key of an experiment.
    if (path == declaration) continue;
    if (value.is_table()) {
      put_all(set, *value.as_table(), path);
    } else {
      refuse_subject(path, key);
      if (std::ranges::count(path, '.') > deepest_key)
        refuse(key.source(), "a key of a rung of [rescue] has more than 64 dotted parts; keys need at most four");
      // put_at() alone would replace what the other spelling has set.
      if (set.at_path(path).node() != nullptr || !put_at(set, path, key, std::move(value)))
        refuse(key.source(), "a rung of [rescue] sets " + path + " twice; set it once");
    }
  }
}

void list_settings(const toml::table& table, const std::string& prefix,
                   std::vector<std::pair<std::string, std::string>>& settings) {
  for (const auto& [key, value] : table) {
    // In quotes where TOML needs them: the text is written into files again.
    const std::string path = joined(prefix, key_literal(key.str()));
    if (value.is_table()) {
      list_settings(*value.as_table(), path, settings);
    } else {
      settings.emplace_back(path, literal(value));
    }
  }
}

// Samples of one optimizer step. Unless a model couples them, their division into batches changes no gradient.
int64_t window_of(const Experiment& experiment) {
  return experiment.train.batch_size * experiment.train.gradient_accumulation_steps;
}

}  // namespace

RescueRung read_rung(toml::table& written) {
  RescueRung rung;
  if (const toml::node* said = written.get(declaration)) {
    if (!said->is_boolean()) {
      refuse(said->source(), std::string(declaration) + " is " + describe(*said) +
                                 "; it must be true or false, or left out: it follows from the rung's keys");
    }
    rung.declared = said->as_boolean()->get();
  }
  rung.set = empty_table_at(written.source());
  put_all(rung.set, written, "");
  if (rung.set.empty())
    refuse(written.source(), "a rung of [rescue] sets nothing; write a key, as \"train.batch_size\" = 8");
  // After the move, which keeps the places that the sentences name.
  check_keys(rung.set);
  return rung;
}

std::vector<std::pair<std::string, std::string>> settings_of(const RescueRung& rung) {
  std::vector<std::pair<std::string, std::string>> settings;
  list_settings(rung.set, "", settings);
  return settings;
}

std::string rung_text(const RescueRung& rung) {
  std::string text;
  for (const auto& [key, value] : settings_of(rung)) text += (text.empty() ? "" : ", ") + key + " = " + value;
  return text;
}

bool keeps_mathematics(const RescueSection& rescue, size_t number, bool couples_samples) {
  const RescueRung& rung = rescue.rungs.at(number);
  const bool sets_batch_size = rung.set.at_path(batch_size).node() != nullptr;
  // Coupled samples see their whole batch, so an equal window does not make up for it.
  return rung.keeps_mathematics && !(couples_samples && sets_batch_size);
}

bool keeps_mathematics(const RescueRung& rung, const Experiment& without, const Experiment& with) {
  return std::ranges::all_of(settings_of(rung), [&](const auto& setting) {
    const std::string& key = setting.first;
    // Whichever of the two it sets, only their product counts.
    if (key == batch_size || key == accumulation) return window_of(without) == window_of(with);
    // What is measured of a sample of batches may drop the rate elsewhere.
    if (key.starts_with("metrics.") && with.train.schedule.name == "plateau") return false;
    return is_cost(key);
  });
}

void check_rung_options(const OptionTable& spec, const RescueSection& rescue, const std::string& where,
                        std::string_view owner) {
  for (const RescueRung& rung : rescue.rungs) {
    const toml::table* options = rung.set.at_path(where).as_table();
    if (options == nullptr) continue;
    for (const auto& [key, value] : *options) {
      const OptionSpec& option = find_option(spec, std::string(key.str()), key, where, owner);
      const std::string name = joined(where, key.str());
      if (option.type == OptionType::path)
        refuse(key.source(), "a rung of [rescue] cannot set " + name + ": it is a path, of which a run has one");
      check_option(option, value, name, owner);
    }
  }
}

}  // namespace headroom
