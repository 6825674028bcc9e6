// Data made to order: where [data.synth] is set and the source's `path` does not exist yet, the source writes it
// (headroom.synth/1).
#pragma once

#include <filesystem>
#include <optional>

#include "config/experiment.hpp"
#include "plugins/library.hpp"

namespace headroom {

// The value of the source's option `path`; nullopt when it has none.
std::optional<std::filesystem::path> data_path(const OptionTable& data_table, const OptionValues& data_options);

// [data.synth] checked against the source's own table.
struct SynthOptions {
  OptionTable table;
  OptionValues values;
};

// nullopt when the experiment has no [data.synth]. Error(bad_input) when the plugin cannot synthesise or its options
// are wrong.
std::optional<SynthOptions> check_synth(const Library& source, const Experiment& experiment);

// Writes into a temporary folder beside `path` and renames it; existing data is never touched. Returns the path when
// data was written. Error(bad_input) when the source has no `path`; Error(cannot_write).
std::optional<std::filesystem::path> synthesise_missing(const Library& source, const std::optional<SynthOptions>& synth,
                                                        const OptionTable& data_table,
                                                        const OptionValues& data_options);

}  // namespace headroom
