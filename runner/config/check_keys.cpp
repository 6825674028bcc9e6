#include "config/check_keys.hpp"

#include <algorithm>

#include "config/keys.hpp"
#include "config/literals.hpp"
#include "config/old_keys.hpp"
#include "config/sentences.hpp"

namespace headroom {

namespace {

// "train.epochs (an integer of at least 1)", "[train]"
std::string introduced(std::string_view path) {
  if (const Key* key = find_key(path); key && key->type != KeyType::options && key->type != KeyType::sweep) {
    return std::string(path) + " (" + allowed(*key) + ")";
  }
  return "[" + std::string(path) + "]";
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// A key or section whose last part is `name`, wherever it stands.
std::string same_name(const std::string& name) {
  for (const Key& key : known_keys()) {
    if (key.name() == name) return key.path;
    if (last_part(key.section()) == name) return std::string(key.section());
  }
  return "";
}

std::string bracketed(std::string_view section) {
  return section.empty() ? "a file" : "[" + std::string(section) + "]";
}

std::string meant_by_place(std::string_view section, const std::string& name) {
  // A slip within the section is likelier than a key of another one.
  const std::string sibling = nearest(normalised(name), names_under(section));
  if (!sibling.empty()) return "; did you mean " + introduced(joined(section, sibling)) + "?";
  // An unknown key here is most likely an option that stands one level too high.
  if (section == "model" || section == "data") {
    return "; options of the plugin are set under [" + std::string(section) + ".options]";
  }
  // Sections inside sections count by their last part, as "optimizer" of [train.optimizer].
  std::vector<std::string> all;
  for (const Key& key : known_keys()) {
    all.emplace_back(key.name());
    if (key.section().find('.') != std::string_view::npos) all.emplace_back(last_part(key.section()));
  }
  const std::string anywhere = nearest(normalised(name), all);
  return anywhere.empty() ? "" : "; did you mean " + introduced(same_name(anywhere)) + "?";
}

[[noreturn]] void refuse_unknown(std::string_view section, const toml::key& key) {
  const std::string name(key.str());
  std::string meant =
      find_key(name) ? "; in quotes its dots are part of one name: write it without quotes" : meant_by(section, name);
  if (meant.empty()) meant = "; " + bracketed(section) + " may hold " + any_of(names_under(section), false);
  refuse(key.source(), "unknown key " + joined(section, key_literal(name)) + meant);
}

void check_entry(const std::string& section, const toml::key& key, const toml::node& value) {
  const std::string path = joined(section, key.str());
  const bool dotted = key.str().find('.') != std::string_view::npos;  // "a.b" in quotes is not a.b
  // A key that is a table, as model.options, is looked into by who knows its keys.
  if (!dotted && find_key(path)) return;
  if (dotted || !is_section(path)) refuse_unknown(section, key);
  if (!value.is_table()) {
    const std::string how =
        section.empty() ? ": write [" + path + "] and its keys below it" : " with " + any_of(names_under(path), false);
    refuse(value.source(), path + " is " + describe(value) + "; it must be a table" + how);
  }
  check_keys(*value.as_table(), path);
}

}  // namespace

std::string joined(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
}

std::string meant_by_name(std::string_view name) {
  // A key of ours in a wrong place comes before another program's name for it.
  const std::string path = same_name(normalised(name));
  if (!path.empty()) return "; did you mean " + introduced(path) + "?";
  const OldKey* old = find_old_key(name);
  if (old == nullptr) return "";
  const std::string note = old->note.empty() ? "" : ": " + std::string(old->note);
  if (!old->key.empty()) return "; Headroom calls it " + introduced(old->key) + note;
  return "; " + std::string(old->note);
}

std::string meant_by(std::string_view section, const std::string& name) {
  const std::string meant = meant_by_name(name);
  return meant.empty() ? meant_by_place(section, name) : meant;
}

void check_keys(const toml::table& table, const std::string& section) {
  for (const auto& [key, value] : table) check_entry(section, key, value);
}

}  // namespace headroom
