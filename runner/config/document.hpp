// One TOML tree out of a file, the files it extends and the --set options, in which every node knows where it was
// written.
//
// toml++ keeps a node's source only while the node is moved, never when it is copied: trees here are moved.
#pragma once

#include <filesystem>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

// Reads `file`, fills in what it `extends` without the keys that it names in `remove`, and lays `overrides` over both;
// the keys `extends` and `remove` are gone from the result. Tables merge, everything else is replaced. Error(bad_input)
// for files that cannot be read, TOML that does not parse, cycles.
toml::table read_document(const std::filesystem::path& file, const std::vector<Override>& overrides);

// One file as it is, without what it extends. Error(bad_input) for files that cannot be read, TOML that does not parse.
toml::table read_one_file(const std::filesystem::path& file);

// The overrides alone, as one tree; later ones win.
toml::table read_overrides(const std::vector<Override>& overrides);

// Puts `value` under `key`, keeping where both were written.
void put(toml::table& table, const toml::key& key, toml::node&& value);

// The most dots of a key: put_at() and toml++ call themselves for each.
inline constexpr int deepest_key = 64;

// The same for a dotted path, "train.batch_size": every part of it stands where `key` was written. False: a value that
// is no table is in the way.
bool put_at(toml::table& table, std::string_view path, const toml::key& key, toml::node&& value);

// Lays `top` over `table`: tables merge, everything else is replaced.
void lay_over(toml::table& table, toml::table&& top);

// Nodes of an override carry "--set key=value" in place of their file.
bool is_override(std::string_view source_path);

// An empty table that says it was written at `at`: what a missing table's errors point at.
toml::table empty_table_at(const toml::source_region& at);

}  // namespace headroom
