// For conformance.cpp: checks of an option table, and option values to try a plugin with.
#pragma once

#include <string>

#include "config/options.hpp"

namespace headroom {

// Error(plugin) with the first mistake: a default that does not parse or is out of bounds, a missing help text, a name
// that needs quotes. `where` is the table's name in the experiment file.
void require_good_options(const OptionTable& table, const std::string& where);

// The values in `set`, the defaults, and an allowed value for each other required option. A required path gets one that
// does not exist. Error(bad_input) for wrong values in `set`, with the same words as check_options().
OptionValues trial_values(const OptionTable& table, toml::table set = {}, std::string_view where = "options",
                          std::string_view owner = "the plugin");

}  // namespace headroom
