#include "config/experiment.hpp"

#include <algorithm>

#include "config/check_keys.hpp"
#include "config/document.hpp"
#include "config/fields.hpp"
#include "config/inert.hpp"
#include "config/literals.hpp"
#include "config/rules.hpp"
#include "config/sweep.hpp"
#include "config/values.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

toml::node* find(toml::table& document, std::string_view path) {
  toml::node* node = &document;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    node = node->is_table() ? node->as_table()->get(path.substr(0, dot)) : nullptr;
    if (node == nullptr) return nullptr;
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return node;
}

[[noreturn]] void refuse_missing(const Key& key, toml::table& document, const fs::path& file) {
  toml::source_region at{};
  at.path = std::make_shared<const std::string>(file.string());
  const toml::node* section = find(document, key.section());
  if (section && section->source().path && !is_override(*section->source().path)) at = section->source();
  refuse(at, key.path + " is missing; add " + std::string(key.name()) + " = \"...\" under [" +
                 std::string(key.section()) + "]");
}

// Sections that exist only when they are written.
void open_sections(Experiment& experiment, toml::table& document) {
  if (find(document, "data.split")) experiment.data.split = SplitFractions{0, 0, 0, 0};
  if (find(document, "train.early_stop")) experiment.train.early_stop.emplace();
}

std::vector<std::string> read_fields(Experiment& experiment, toml::table& document) {
  std::vector<std::string> set;
  each_field(experiment, [&](std::string_view path, auto&& field) {
    const Key& key = *find_key(path);
    toml::node* node = find(document, path);
    if (node == nullptr) {
      if (key.required) refuse_missing(key, document, experiment.file);
      return;
    }
    if (!read_value(key, *node, field)) refuse_value(key, key.path, *node);
    set.push_back(key.path);
  });
  return set;
}

// So that what is missing in [model.options] can be said of the place of [model].
void place_absent_options(Experiment& experiment, toml::table& document) {
  if (!find(document, "model.options")) experiment.model_options = empty_table_at(find(document, "model")->source());
  if (!find(document, "data.options")) experiment.data_options = empty_table_at(find(document, "data")->source());
}

}  // namespace

Experiment load_experiment(const fs::path& file, const std::vector<Override>& overrides) {
  toml::table document = read_document(file, overrides);
  check_keys(document);
  if (toml::table* sweep = document.get_as<toml::table>("sweep")) check_sweep(*sweep);
  Experiment experiment;
  experiment.file = fs::absolute(file).lexically_normal();
  open_sections(experiment, document);
  const std::vector<std::string> set = read_fields(experiment, document);
  place_absent_options(experiment, document);
  check_rules(experiment, document);
  for (const std::string& key : set) {
    if (const std::string_view why = why_inert(experiment, key); !why.empty())
      experiment.inert.push_back({key, std::string(why)});
  }
  return experiment;
}

}  // namespace headroom
