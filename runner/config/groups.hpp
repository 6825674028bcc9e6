// [[train.groups]] as it is written.
#pragma once

#include <string>
#include <toml++/toml.h>

#include "config/experiment.hpp"

namespace headroom {

// One element of train.groups, called `name` in sentences: "train.groups[0]". Error(bad_input) at what is wrong with
// it.
ParameterGroup read_group(toml::table& written, const std::string& name);

// The same as an inline table.
std::string group_literal(const ParameterGroup& group);

}  // namespace headroom
