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
  std::string id;  // "003_batch_size=8_lr=0.001": a folder's name, in the order of the sweep
  Settings settings;
  std::vector<SweptChoice> choices;  // the same, for load_trial()
};

// Every combination of a grid, the first key slowest, or the draws of a random search, as far as the constraint holds.
// The same [sweep] gives the same trials. `base`: the experiment itself, for keys of the constraint that are not swept.
// Error(bad_input) when there is none, or more than 10,000.
std::vector<Trial> list_trials(const SweepSection& sweep, const Experiment& base);

}  // namespace headroom
