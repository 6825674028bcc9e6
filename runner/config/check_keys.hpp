// Refuses keys that are not known, naming the one that was meant.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>

namespace headroom {

// Every key and section of `table` is known, and sections are tables. `section`: where the table stands, "" for a whole
// document. Values are not looked at.
void check_keys(const toml::table& table, const std::string& section = "");

// "; Headroom calls it train.epochs (an integer of at least 1)" for the name of a key that stands in a wrong place or
// is another program's; "" when the name says nothing.
std::string meant_by_name(std::string_view name);

// The same, also by what stands nearest in `section`.
std::string meant_by(std::string_view section, const std::string& name);

std::string joined(std::string_view section, std::string_view name);  // "train.epochs"

}  // namespace headroom
