// Reads and writes [[train.groups]].
#pragma once

#include <string>
#include <toml++/toml.h>

#include "config/experiment.hpp"

namespace headroom {

// Reads one element of train.groups, which errors call `name`: "train.groups[0]". Error(bad_input) at the first
// mistake.
ParameterGroup read_group(toml::table& written, const std::string& name);

// The same as an inline table.
std::string group_literal(const ParameterGroup& group);

}  // namespace headroom
