// Values that are fine by themselves but not together.
#pragma once

#include <toml++/toml.h>

#include "config/experiment.hpp"

namespace headroom {

// Throws Error(bad_input) for the first contradiction. `document` is what `experiment` was read from.
void check_rules(const Experiment& experiment, const toml::table& document);

}  // namespace headroom
