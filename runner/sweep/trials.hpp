// The trials of a [sweep].
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/experiment.hpp"
#include "config/sweep.hpp"

namespace headroom {

using Settings = std::vector<std::pair<std::string, std::string>>;  // ("train.batch_size", "8"): key and TOML

struct Trial {
  std::string id;  // "003_batch_size=8_lr=0.001": its folder's name; sorts in the order of the sweep
  Settings settings;
  std::vector<SweptChoice> choices;  // the same, for load_trial()
};

// The trials: every combination of a grid, the first key changing slowest, or the draws of a random search, without
// those that the constraint excludes. The same [sweep] always gives the same trials. `base`: the experiment itself, for
// keys of the constraint that are not swept. Error(bad_input) when there are no trials, or more than 10,000.
std::vector<Trial> list_trials(const SweepSection& sweep, const Experiment& base);

}  // namespace headroom
