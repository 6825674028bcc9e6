// Applies [[train.groups]] to the parameters that a model declares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

// Each parameter takes its learning-rate scale, weight decay and freezing from the first group that matches it, on top
// of what the model declares. Error(bad_input), with the nearest name, where a group matches no parameter or only those
// that earlier groups took; and where no parameter would be trained. `model`: its id.
void apply_groups(std::span<const ParameterGroup> groups, std::vector<Parameter>& parameters, const std::string& model);

// For the log: one line for each group, with its parameters and what it does to them.
std::vector<std::string> group_lines(std::span<const ParameterGroup> groups, const std::vector<Parameter>& parameters);

}  // namespace headroom
