// Options whose keys nobody declares (OptionType::open_table): kept as a JSON object, in the order of their names.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>

namespace headroom {

// Error(bad_input) at a date or a number that is not finite, which JSON lacks; `key` is what the sentence calls the
// table.
std::string open_table_json(const toml::table& table, const std::string& key);

// What open_table_json() made.
toml::table open_table_toml(std::string_view json);

}  // namespace headroom
