#include "config/document.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "config/literals.hpp"
#include "config/own_experiments.hpp"
#include "config/sentences.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view override_mark = "--set ";
constexpr size_t longest_file = size_t{4} << 20;

toml::source_region in_file(const fs::path& file) {
  toml::source_region region{};  // a default-initialised one has any line
  region.path = std::make_shared<const std::string>(file.string());
  return region;
}

// What to give instead of a file that is not there.
std::string what_to_give(const fs::path& missing) {
  std::string text = "give the path of an experiment file (TOML)";
  const std::vector<std::string> names = own_experiment_names();
  // A path with the suffix is no misspelt name.
  if (missing.extension() == ".toml" || names.empty()) return text;
  return text + ", or the name of one that comes with Headroom: " + any_of(names, /*in_quotes=*/false);
}

std::string read_text(const fs::path& file, const toml::source_region& asked_at, std::string_view asked_by) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  const std::string name = std::string(asked_by) + place(in_file(file));
  if (!fs::exists(status)) refuse(asked_at, name + " does not exist; " + what_to_give(file));
  if (fs::is_directory(status)) refuse(asked_at, name + " is a folder; give the path of an experiment file (TOML)");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(asked_at, name + " cannot be opened for reading; check its permissions");
  // One byte more than allowed tells a larger file, whatever its size is said to be.
  std::string text(longest_file + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) refuse(asked_at, name + " cannot be read; check the disk");
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > longest_file)
    refuse(asked_at, name + " is larger than 4 MiB; an experiment file is text of a few KiB");
  return text;
}

// The index behind the string that begins at `at`, with one quote or with three.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const bool has_lines = text.substr(at).starts_with(std::string(3, quote));
  at += has_lines ? 3 : 1;
  while (at < text.size()) {
    if (text[at] == '\n' && !has_lines) return at;  // no valid TOML
    if (text[at] == '\\' && quote == '"') {
      at += 2;
    } else if (text[at] != quote) {
      ++at;
    } else if (!has_lines) {
      return at + 1;
    } else {
      const size_t quotes = std::min(text.find_first_not_of(quote, at), text.size()) - at;
      // Up to two quotes may stand before the three that end it.
      if (quotes >= 3) return at + std::min<size_t>(quotes, 5);
      at += quotes;
    }
  }
  return text.size();
}

// toml++ builds and destroys a.b.c. ... recursively; a hostile file must not exhaust the stack.
void refuse_deep_keys(std::string_view text, const fs::path& file) {
  // Dots since a character that ends a key, or a / as in paths.
  const auto count = [&](char c, int& dots) {
    if (std::string_view("\n,={}[]/").find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots > deepest_key)
      refuse(in_file(file), "a key has more than 64 dotted parts; experiment files need at most four");
  };
  int dots = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (text[at] == '"' || text[at] == '\'') {
      // Its dots count for themselves: in [sweep] they are those of a key, "train.batch_size".
      int dots_inside = 0;
      for (const size_t end = end_of_string(text, at); at < end; ++at) count(text[at], dots_inside);
    } else {
      count(text[at++], dots);
    }
  }
}

// A sentence is one line.
std::string without_line_breaks(std::string_view text) {
  std::string result(text);
  std::replace(result.begin(), result.end(), '\n', ' ');
  return result;
}

toml::table parse_file(const fs::path& file, const toml::source_region& asked_at, std::string_view asked_by) {
  const std::string text = read_text(file, asked_at, asked_by);
  refuse_deep_keys(text, file);
  try {
    return toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    refuse(error.source(), "this is not valid TOML: " + without_line_breaks(error.description()));
  }
}

// What the file sets stays; `base` gives the rest and is used up.
void fill_in(toml::table& table, toml::table&& base) {
  for (auto&& [key, value] : base) {
    toml::node* mine = table.get(key);
    if (mine == nullptr) {
      put(table, key, std::move(value));
    } else if (mine->is_table() && value.is_table()) {
      fill_in(*mine->as_table(), std::move(*value.as_table()));
    }
  }
}

bool erase_at(toml::table& table, std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return table.erase(path) > 0;
  toml::table* inner = table.get_as<toml::table>(path.substr(0, dot));
  return inner != nullptr && erase_at(*inner, path.substr(dot + 1));
}

void remove_keys(toml::table& base, const toml::node& remove, const fs::path& base_file) {
  const toml::array* keys = remove.as_array();
  if (keys == nullptr || (!keys->empty() && !keys->is_homogeneous<std::string>())) {
    refuse(remove.source(), "remove is " + describe(remove) +
                                "; it must be a list of keys that the extended file sets, as [\"train.early_stop\"]");
  }
  for (const toml::node& key : *keys) {
    if (!erase_at(base, key.as_string()->get()))
      refuse(key.source(), "remove names " + quote(key.as_string()->get()) + ", which " + place(in_file(base_file)) +
                               " does not set; leave it out");
  }
}

std::string chain_text(const std::vector<fs::path>& chain) {
  std::string text;
  for (const fs::path& file : chain) text += (text.empty() ? "" : " -> ") + place(in_file(file));
  return text;
}

toml::table read_with_bases(const fs::path& file, std::vector<fs::path>& chain, const toml::source_region& asked_at,
                            std::string_view asked_by) {
  std::error_code ignored;  // a path that cannot be resolved fails below, when it is read
  // Resolved, so that a circle through links is found.
  const fs::path resolved = fs::weakly_canonical(file, ignored);
  const bool met = std::find(chain.begin(), chain.end(), resolved) != chain.end();
  chain.push_back(resolved);
  if (met) refuse(asked_at, "extends goes round in a circle: " + chain_text(chain) + "; remove one of these extends");

  toml::table table = parse_file(file, asked_at, asked_by);
  const toml::node* extends = table.get("extends");
  if (extends == nullptr) {
    if (const toml::node* remove = table.get("remove"))
      refuse(remove->source(), "remove takes keys out of the file that this one extends; this file has no extends");
    return table;
  }
  const auto* base = extends->as_string();
  if (base == nullptr || base->get().empty() || base->get().find('\0') != std::string::npos) {
    refuse(extends->source(),
           "extends is " + describe(*extends) + "; it must be the path of one experiment file, relative to this one");
  }
  const fs::path base_file = experiment_file((file.parent_path() / base->get()).lexically_normal(), base->get());
  toml::table base_table =
      read_with_bases(base_file, chain, extends->source(), "extends names a file that cannot be used: ");
  // Before the merge: what this file sets itself stays.
  if (const toml::node* remove = table.get("remove")) remove_keys(base_table, *remove, base_file);
  table.erase("extends");
  table.erase("remove");
  fill_in(table, std::move(base_table));
  return table;
}

toml::table parse_override(const Override& given) {
  const std::string text = given.key + "=" + given.value;
  const std::string source = std::string(override_mark) + without_line_breaks(text);
  refuse_deep_keys(given.key, source);
  // As TOML first; what is none is a string, because shells take quotes away.
  try {
    return toml::parse(given.key + " = " + given.value, source);
  } catch (const toml::parse_error&) {  // not TOML: a string
  }
  try {
    return toml::parse(given.key + " = " + quote(given.value), source);
  } catch (const toml::parse_error&) {  // the key is at fault, or bytes of the value
  }
  try {
    static_cast<void>(toml::parse(given.key + " = 0", source));
  } catch (const toml::parse_error&) {
    refuse(in_file(source), quote(given.key) + " is not a key; write --set section.key=value");
  }
  refuse(in_file(source), "the value is not UTF-8, as TOML must be; write it in that encoding");
}

}  // namespace

void put(toml::table& table, const toml::key& key, toml::node&& value) {
  // insert_or_assign() alone would keep an earlier key, and with it the place where that was written.
  table.erase(key);
  std::move(value).visit([&](auto&& concrete) { table.insert_or_assign(key, std::move(concrete)); });
}

bool put_at(toml::table& table, std::string_view path, const toml::key& key, toml::node&& value) {
  const size_t dot = path.find('.');
  toml::source_region at = key.source();
  const toml::key first(path.substr(0, dot), std::move(at));
  if (dot == std::string_view::npos) {
    put(table, first, std::move(value));
    return true;
  }
  // A table on the way that is not written gets the position of the key.
  if (table.get(first) == nullptr) put(table, first, empty_table_at(key.source()));
  toml::table* inner = table.get(first)->as_table();
  return inner != nullptr && put_at(*inner, path.substr(dot + 1), key, std::move(value));
}

void lay_over(toml::table& table, toml::table&& top) {
  for (auto&& [key, value] : top) {
    toml::node* mine = table.get(key);
    if (mine != nullptr && mine->is_table() && value.is_table()) {
      lay_over(*mine->as_table(), std::move(*value.as_table()));
    } else {
      put(table, key, std::move(value));
    }
  }
}

bool is_override(std::string_view source_path) { return source_path.starts_with(override_mark); }

toml::table empty_table_at(const toml::source_region& at) {
  // toml++ gives places only to what it parses, so a text is parsed that has a table at this place.
  const uint32_t lines = at.begin ? at.begin.line - 1 : 0, columns = at.begin ? at.begin.column - 1 : 0;
  const std::string text = std::string(lines, '\n') + std::string(columns, ' ') + "[t]";
  toml::table holder = toml::parse(text, at.path ? *at.path : std::string());
  return std::move(*holder.get_as<toml::table>("t"));
}

toml::table read_overrides(const std::vector<Override>& overrides) {
  toml::table table;
  for (const Override& given : overrides) {
    toml::table top = parse_override(given);
    for (const char* of_a_file : {"extends", "remove"}) {
      if (const toml::node* set = top.get(of_a_file))
        refuse(set->source(), std::string(of_a_file) + " cannot be set here; write it in the file");
    }
    lay_over(table, std::move(top));
  }
  return table;
}

toml::table read_one_file(const fs::path& file) { return parse_file(file, {}, ""); }

// Absolute from here on: places in sentences and relative paths follow from it.
fs::path experiment_path(const fs::path& word) { return experiment_file(fs::absolute(word).lexically_normal(), word); }

toml::table read_document(const fs::path& word, const std::vector<Override>& overrides) {
  std::vector<fs::path> chain;
  toml::table table = read_with_bases(experiment_path(word), chain, {}, "");
  lay_over(table, read_overrides(overrides));
  return table;
}

}  // namespace headroom
