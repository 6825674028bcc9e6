// Synthetic data: where [data.synth] is set and the source's `path` does not exist, the source writes it
// (headroom.synth/1).
#pragma once

#include <filesystem>
#include <optional>

#include "config/experiment.hpp"
#include "plugins/library.hpp"

namespace headroom {

// The value of the source's option `path`; nullopt where it has no such option.
std::optional<std::filesystem::path> data_path(const OptionTable& data_table, const OptionValues& data_options);

// [data.synth], checked against the option table of the source.
struct SynthOptions {
  OptionTable table;
  OptionValues values;
};

// nullopt where the experiment has no [data.synth]. Error(bad_input) where the plugin cannot synthesise, or an option
// is wrong.
std::optional<SynthOptions> check_synth(const Library& source, const Experiment& experiment);

// Lets the source write into a temporary folder next to `path`, then renames it. Existing data is never touched.
// Returns the path where data was written; nullopt where there was nothing to do, or another process was faster.
// Error(bad_input) where the source has no option `path`; Error(cannot_write). [control]
std::optional<std::filesystem::path> synthesise_missing(const Library& source, const std::optional<SynthOptions>& synth,
                                                        const OptionTable& data_table,
                                                        const OptionValues& data_options);

}  // namespace headroom
