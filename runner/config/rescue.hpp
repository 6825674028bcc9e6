// [rescue]: what to change, rung after rung, when a run does not fit. A rung sets keys of the experiment file, options
// of plugins among them, and is laid over the file, what it extends and --set.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

#include "config/experiment.hpp"
#include "config/options.hpp"

namespace headroom {

// One element of rescue.rungs, { "train.batch_size" = 8 } or { train = { batch_size = 8 } }. Moves values out of it.
// Error(bad_input) at keys that are not known, and at keys that say which run it is. Values are not looked at.
RescueRung read_rung(toml::table& written);

// What a rung sets: ("train.batch_size", "8"), keys and values as TOML.
std::vector<std::pair<std::string, std::string>> settings_of(const RescueRung& rung);
std::string rung_text(const RescueRung& rung);  // "train.batch_size = 8, train.gradient_accumulation_steps = 8"

// Whether rung number `rung`, from 0, leaves the mathematics of a run alone. `couples_samples`: its model's samples see
// each other, so batch_size belongs to the mathematics.
bool keeps_mathematics(const RescueSection& rescue, size_t rung, bool couples_samples);

// The same by the keys alone, between the experiment without and with `rung`.
bool keeps_mathematics(const RescueRung& rung, const Experiment& without, const Experiment& with);

// Options that rungs set below `where` ("model.options") are in the plugin's own table. `owner` as in check_options().
void check_rung_options(const OptionTable& spec, const RescueSection& rescue, const std::string& where,
                        std::string_view owner);

}  // namespace headroom
