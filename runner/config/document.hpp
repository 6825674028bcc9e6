// Reads a file, the files that it extends and the --set options into one TOML tree, in which every node knows where it
// was written.
//
// toml++ keeps a node's source only when the node is moved, not when it is copied. So trees are always moved here.
#pragma once

#include <filesystem>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

// The file that `word` on the command line means, absolute and normalised: a path, or the name of one of the program's
// own experiments.
std::filesystem::path experiment_path(const std::filesystem::path& word);

// Reads the file that `word` means, merges in what it `extends` without the keys that it lists in `remove`, and applies
// `overrides` to the result, from which the keys `extends` and `remove` are removed. Tables merge; everything else is
// replaced. Error(bad_input) for files that cannot be read, TOML that does not parse, cycles.
toml::table read_document(const std::filesystem::path& word, const std::vector<Override>& overrides);

// Reads one file without what it extends. Error(bad_input) for a file that cannot be read, and for TOML that does not
// parse.
toml::table read_one_file(const std::filesystem::path& file);

// The overrides as a tree; later ones win.
toml::table read_overrides(const std::vector<Override>& overrides);

// Sets `key` to `value`; both keep their source positions.
void put(toml::table& table, const toml::key& key, toml::node&& value);

// The most dots in a key: put_at() and toml++ recurse once for each.
inline constexpr int deepest_key = 64;

// The same for a dotted path, "train.batch_size"; every part of it gets the position of `key`. Returns false where a
// value that is not a table is in the way.
bool put_at(toml::table& table, std::string_view path, const toml::key& key, toml::node&& value);

// Merges `top` into `table`: tables merge, everything else is replaced.
void lay_over(toml::table& table, toml::table&& top);

// Whether a node's source is an override: it is then "--set key=value" in place of a file.
bool is_override(std::string_view source_path);

// An empty table with the source position `at`, for errors about a missing table.
toml::table empty_table_at(const toml::source_region& at);

}  // namespace headroom
