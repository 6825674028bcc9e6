// Values that are fine by themselves but not together, or not with the model.
#pragma once

#include <span>
#include <string>
#include <toml++/toml.h>

#include "config/experiment.hpp"

namespace headroom {

// Throws Error(bad_input) for the first contradiction. `document` is what `experiment` was read from.
void check_rules(const Experiment& experiment, const toml::table& document);

// Error(bad_input) when `precision` is not "fp32" and not among what the model offers; other words in `offered` are
// passed over.
void check_precision(const std::string& precision, std::span<const std::string> offered, const std::string& model);

}  // namespace headroom
