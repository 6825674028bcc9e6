// How often each class occurs in the data of a run: for `headroom validate`, and for models that weigh their classes.
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
  std::vector<std::string> warnings;  // a class that occurs in val only, values outside the classes
};

// Counts at most 10,000 samples of each split, evenly spaced. Errors as count_classes(). [control]
ClassBalance class_balance(const Setup& setup);

// Call it before the first step of a new run. For each output whose model asks for counts, it counts the whole training
// split and passes the counts to the model. `say` gets lines for the log. Error(bad_input) where the source lacks the
// field. [control]
void balance_classes(const Setup& setup, const std::function<void(const std::string& line)>& say);

}  // namespace headroom
