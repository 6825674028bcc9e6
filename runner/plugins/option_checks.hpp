// For conformance.cpp: checks of an option table, and values to try a plugin with.
#pragma once

#include <string>

#include "config/options.hpp"

namespace headroom {

// Error(plugin) with the first mistake: a default that does not parse or is out of bounds, a missing help text, a name
// that needs quotes. `where` is the table's name in the experiment file.
void require_good_options(const OptionTable& table, const std::string& where);

// What is `set`, the defaults, and an allowed value for each other required option; a required path names a place that
// does not exist. Error(bad_input) for what is set, as check_options() with the same words.
OptionValues trial_values(const OptionTable& table, toml::table set = {}, std::string_view where = "options",
                          std::string_view owner = "the plugin");

}  // namespace headroom
