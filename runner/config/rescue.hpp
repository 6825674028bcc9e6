// [rescue]: what to change, rung after rung, when a run does not fit. A rung sets keys of the experiment file, also
// options of plugins. Its values win over the file, what the file extends, and --set.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

#include "config/experiment.hpp"
#include "config/options.hpp"

namespace headroom {

// Reads one element of rescue.rungs: { "train.batch_size" = 8 } or { train = { batch_size = 8 } }. Moves values out of
// it. Error(bad_input) at unknown keys, and at keys that decide which run it is. Values are not checked.
RescueRung read_rung(toml::table& written);

// The keys and values, as TOML, that a rung sets: ("train.batch_size", "8").
std::vector<std::pair<std::string, std::string>> settings_of(const RescueRung& rung);
std::string rung_text(const RescueRung& rung);  // "train.batch_size = 8, train.gradient_accumulation_steps = 8"

// Whether rung number `rung`, from 0, keeps the mathematics of the run. `couples_samples`: the model couples the
// samples of a batch, so batch_size changes the mathematics.
bool keeps_mathematics(const RescueSection& rescue, size_t rung, bool couples_samples);

// The same by the keys alone; `without` and `with` are the experiment without and with `rung`.
bool keeps_mathematics(const RescueRung& rung, const Experiment& without, const Experiment& with);

// Checks options that rungs set below `where` ("model.options") against the plugin's own table. `owner` as in
// check_options().
void check_rung_options(const OptionTable& spec, const RescueSection& rescue, const std::string& where,
                        std::string_view owner);

}  // namespace headroom
