// Rules between keys: values that are valid alone but not together, or not with the model.
#pragma once

#include <span>
#include <string>
#include <toml++/toml.h>

#include "config/experiment.hpp"

namespace headroom {

// Throws Error(bad_input) for the first contradiction. `document`: what `experiment` was read from.
void check_rules(const Experiment& experiment, const toml::table& document);

// Error(bad_input) when `precision` is neither "fp32" nor among what the model offers. Other words in `offered` are
// ignored.
void check_precision(const std::string& precision, std::span<const std::string> offered, const std::string& model);

}  // namespace headroom
