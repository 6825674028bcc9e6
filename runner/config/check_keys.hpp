// Refuses unknown keys, and names the one that was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>

namespace headroom {

// Requires that every key and section of `table` is known, and that sections are tables. `section`: the section that
// the table is; "" for a whole document. Values are not checked.
void check_keys(const toml::table& table, const std::string& section = "");

// For the name of a key that is in the wrong section or belongs to another program: "; Headroom calls it train.epochs
// (an integer of at least 1)". "" when the name is not known anywhere.
std::string meant_by_name(std::string_view name);

// The same, or else the most similar name in `section`.
std::string meant_by(std::string_view section, const std::string& name);

std::string joined(std::string_view section, std::string_view name);  // "train.epochs"

}  // namespace headroom
