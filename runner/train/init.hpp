// What a new run does to its model before the first step: the weights that it starts from in place of those drawn from
// the seed ([init]), and how often each class occurs, for models that weigh their classes.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/torch_model.hpp"
#include "train/setup.hpp"

namespace headroom {

// [init]: copies tensors whose (mapped) names and shapes match; returns one line for the log, "" without init.from.
// Error(bad_input) when nothing matched or a tensor of the model is neither found nor ignored.
std::string initialise_from(const InitSection& init, Model& model);

// Hash of what [init] starts a run from: the tensors of its file, wherever it lies, with map and ignore. Empty without
// init.from.
std::string start_id(const InitSection& init);

// How often each class occurs in the data of a run, for `headroom validate` (class_balance.cpp).
struct ClassBalance {
  // "<output>" -> {"field", "names" where there are any, "train": {"samples", "of", "counts"}, "val": the same}; an
  // output whose classes are no field of the source is left out.
  nlohmann::json json = nlohmann::json::object();
  std::vector<std::string> warnings;  // a class that is in val alone, values that are no class
};

// Of at most 10,000 samples a split, evenly spaced. Error as count_classes(). [control]
ClassBalance class_balance(const Setup& setup);

// Before the first step of a new run: counts the whole training split for the outputs of the model that ask for it, and
// tells it. `say`: lines for the log. Error(bad_input) where the source lacks the field. [control]
void balance_classes(const Setup& setup, const std::function<void(const std::string& line)>& say);

}  // namespace headroom
