// Checks of option tables, and values to try a plugin with.
#pragma once

#include <string>

#include "config/options.hpp"

namespace headroom {

// Throws Error with the first thing wrong: a default that does not parse or is out of range, bounds that cross, a
// missing help text.
void require_good_options(const OptionTable& table, const std::string& where);

// Defaults, and something allowed by the table for what is required: paths name a place that does not exist.
OptionValues trial_values(const OptionTable& table);

}  // namespace headroom
