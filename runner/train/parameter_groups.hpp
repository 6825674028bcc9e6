// [[train.groups]] over the parameters that a model declares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

// Scales, decays and freezes parameters as the first group that matches them says, on top of what the model itself says
// of them. Error(bad_input) with a name that is near where a group matches nothing, or nothing that an earlier one has
// left, and where no parameter would be trained. `model`: its id.
void apply_groups(std::span<const ParameterGroup> groups, std::vector<Parameter>& parameters, const std::string& model);

// Of each group what it holds and does, for the log.
std::vector<std::string> group_lines(std::span<const ParameterGroup> groups, const std::vector<Parameter>& parameters);

}  // namespace headroom
