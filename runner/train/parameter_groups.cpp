#include "train/parameter_groups.hpp"

#include <algorithm>
#include <fnmatch.h>

#include "config/literals.hpp"
#include "config/sentences.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

bool matches(const ParameterGroup& group, const Parameter& parameter) {
  const auto fits = [&](const std::string& name) { return fnmatch(group.match.c_str(), name.c_str(), 0) == 0; };
  return parameter.kind == HR_PARAMETER &&
         (fits(parameter.name) || (!parameter.group.empty() && fits(parameter.group)));
}

// The number of groups where there is none.
size_t group_of(std::span<const ParameterGroup> groups, const Parameter& parameter) {
  const auto found =
      std::ranges::find_if(groups, [&](const ParameterGroup& group) { return matches(group, parameter); });
  return static_cast<size_t>(found - groups.begin());
}

// What a pattern could have meant: "encoder.0.weight", "encoder.0.*", "encoder.*", and the model's own groups.
std::vector<std::string> patterns_of(const std::vector<Parameter>& parameters) {
  std::vector<std::string> patterns;
  for (const Parameter& parameter : parameters) {
    if (parameter.kind != HR_PARAMETER) continue;
    patterns.push_back(parameter.name);
    if (!parameter.group.empty()) patterns.push_back(parameter.group);
    for (size_t dot = parameter.name.find('.'); dot != std::string::npos; dot = parameter.name.find('.', dot + 1))
      patterns.push_back(parameter.name.substr(0, dot) + ".*");
  }
  return patterns;
}

std::string first_names(const std::vector<Parameter>& parameters) {
  constexpr size_t most_named = 5;
  std::string list;
  size_t count = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.kind == HR_PARAMETER && count++ < most_named)
      list += (list.empty() ? "" : ", ") + quote(parameter.name);
  }
  return list + (count > most_named ? " and " + std::to_string(count - most_named) + " more" : "");
}

std::string written_at(const ParameterGroup& group) { return group.place.empty() ? "" : group.place + ": "; }

[[noreturn]] void refuse_group(const ParameterGroup& group, size_t number, const std::string& problem) {
  throw Error(Exit::bad_input, "config",
              written_at(group) + "train.groups[" + std::to_string(number) + "].match is " + quote(group.match) + ", " +
                  problem);
}

void require_parameters(std::span<const ParameterGroup> groups, const std::vector<Parameter>& parameters,
                        const std::string& model) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto is_its = [&](const Parameter& parameter) { return group_of(groups, parameter) == i; };
    if (std::ranges::any_of(parameters, is_its)) continue;
    if (std::ranges::any_of(parameters, [&](const Parameter& parameter) { return matches(groups[i], parameter); })) {
      refuse_group(groups[i], i,
                   "and all that it matches belongs to groups before it: the first that matches counts; write it "
                   "before them or leave it out");
    }
    const std::string near = nearest(groups[i].match, patterns_of(parameters));
    refuse_group(groups[i], i,
                 "which no parameter of model '" + model + "' is called" +
                     (near.empty() ? "; it has " + first_names(parameters) : ": did you mean " + quote(near) + "?"));
  }
}

}  // namespace

void apply_groups(std::span<const ParameterGroup> groups, std::vector<Parameter>& parameters,
                  const std::string& model) {
  if (groups.empty()) return;
  require_parameters(groups, parameters, model);
  for (Parameter& parameter : parameters) {
    const size_t number = group_of(groups, parameter);
    if (number == groups.size()) continue;
    const ParameterGroup& group = groups[number];
    parameter.lr_scale *= group.lr_scale;
    parameter.lr *= group.lr_scale;
    if (group.weight_decay) parameter.weight_decay = group.weight_decay;
    if (group.freeze) parameter.frozen_until_step = INT64_MAX;
  }
  if (std::ranges::none_of(parameters, &Parameter::trains)) {
    throw Error(Exit::bad_input, "config",
                written_at(groups.front()) + "train.groups freezes all that model '" + model +
                    "' would train; leave some of it unfrozen");
  }
}

std::vector<std::string> group_lines(std::span<const ParameterGroup> groups, const std::vector<Parameter>& parameters) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < groups.size(); ++i) {
    uint64_t tensors = 0, numbers = 0;
    for (const Parameter& parameter : parameters) {
      if (group_of(groups, parameter) != i) continue;
      ++tensors;
      numbers += static_cast<uint64_t>(parameter.tensor->numel());
    }
    const ParameterGroup& group = groups[i];
    std::string line = "train.groups: " + quote(group.match) + " is " + counted(tensors, "parameter") + " with " +
                       counted(numbers, "number");
    if (group.lr_scale != 1.0) line += ", learning rate x " + number_text(group.lr_scale);
    if (group.weight_decay) line += ", weight decay " + number_text(*group.weight_decay);
    lines.push_back(line + (group.freeze ? ", frozen" : ""));
  }
  return lines;
}

}  // namespace headroom
