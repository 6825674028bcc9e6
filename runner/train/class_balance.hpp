// How often each class occurs in the data of a run, for `headroom validate` and for models that weigh their classes.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/setup.hpp"

namespace headroom {

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
