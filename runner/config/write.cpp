#include <algorithm>
#include <map>

#include "config/experiment.hpp"
#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/literals.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

// Lists of tables get a line for each.
std::string entry_literal(const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr || list->empty() || !list->front().is_table()) return literal(node);
  std::string text = "[\n";
  for (const toml::node& element : *list) text += "  " + literal(element) + ",\n";
  return text + "]";
}

std::string table_text(std::string_view header, const toml::table& table) {
  std::string text = "\n[" + std::string(header) + "]\n";
  for (const auto& [key, value] : table) text += key_literal(key.str()) + " = " + entry_literal(value) + "\n";
  return text;
}

// One [section]: its keys in order, its sub-sections as inline tables, then its tables of options.
class Section {
 public:
  void add(const Key& key, const std::string& literal) {
    const std::string section(key.section());
    const size_t dot = section.find('.');
    const std::string entry = std::string(key.name()) + " = " + literal;
    if (dot == std::string::npos) {
      lines_.push_back({"", entry});
      return;
    }
    // An inline table is written as a whole: TOML lets nothing be added to it later.
    const std::string inner = section.substr(dot + 1);
    const auto line = std::ranges::find(lines_, inner, &Line::inner);
    if (line == lines_.end()) {
      lines_.push_back({inner, entry});
    } else {
      line->text += ", " + entry;
    }
  }
  // Behind the keys in text(): a [section.options] header ends [section].
  void add_table(const Key& key, const toml::table& table) { tables_ += table_text(key.path, table); }

  std::string text(std::string_view name) const {
    std::string text;
    for (const Line& line : lines_)
      text += line.inner.empty() ? line.text + "\n" : line.inner + " = { " + line.text + " }\n";
    return (text.empty() ? "" : "\n[" + std::string(name) + "]\n" + text) + tables_;
  }

 private:
  struct Line {
    std::string inner;  // "optimizer" of train.optimizer; empty: a key of the section itself
    std::string text;
  };
  std::vector<Line> lines_;
  std::string tables_;
};

// A value that does nothing and that nobody set would be reported as set when the file is read again.
bool is_left_out(const Experiment& experiment, const Key& key) {
  return !why_idle(experiment, key.path).empty() &&
         std::ranges::find(experiment.inert, key.path, &Inert::key) == experiment.inert.end();
}

}  // namespace

std::string experiment_to_toml(const Experiment& experiment, const toml::table& model_options,
                               const toml::table& data_options, const std::optional<toml::table>& data_synth,
                               const DecidedValues& decided) {
  std::vector<std::pair<std::string, Section>> sections;
  const auto section_of = [&](const Key& key) -> Section& {
    const std::string name = key.path.substr(0, key.path.find('.'));
    // The table of keys has those of a section together.
    if (sections.empty() || sections.back().first != name) sections.emplace_back(name, Section());
    return sections.back().second;
  };
  const auto add = [&](const Key& key, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, toml::table>) {
      // The checked ones, with the plugin's defaults.
      if (key.path == "model.options" || key.path == "data.options") {
        section_of(key).add_table(key, key.path == "model.options" ? model_options : data_options);
      } else if (!field.empty()) {
        section_of(key).add_table(key, field);
      }
    } else if constexpr (std::is_same_v<Field, std::optional<toml::table>>) {
      const Field& table = key.path == "data.synth" ? data_synth : field;
      if (table) section_of(key).add_table(key, *table);
    } else if (const std::string literal = value_literal(key, field); !literal.empty()) {
      section_of(key).add(key, literal);
    }
  };
  each_field(experiment, [&](std::string_view path, const auto& field) {
    const Key& key = *find_key(path);
    if (const auto found = decided.find(path); found != decided.end()) {
      if (!found->second.empty()) section_of(key).add(key, found->second);
    } else if (!is_left_out(experiment, key)) {
      add(key, field);
    }
  });

  std::string text = "# Written by headroom: the experiment with everything it extends, sets and leaves to defaults.\n";
  for (const auto& [name, section] : sections) text += section.text(name);
  return text;
}

}  // namespace headroom
