// How `headroom` uses libexec/headroom-train: hands a whole command over, or asks what a LibTorch plugin declares.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/experiment.hpp"
#include "config/options.hpp"
#include "memory/supervisor.hpp"

namespace headroom {

// <executable>/../libexec/headroom-train.
std::filesystem::path trainer_program();

// The folder that plugins outside this tree are built with: the root of an installed SDK, or <executable>/../sdk in the
// build folder. Error(bad_input) where there is none.
std::filesystem::path sdk_folder();

// Runs the trainer with `words` and waits for its end. Writes a post-mortem where one is due, and the run's
// report.html. Returns the exit code. `ended` receives how it ended, and its run folder. Error(bad_input): one of its
// libraries is missing.
int run_trainer(const std::vector<std::string>& words);
int run_trainer(const std::vector<std::string>& words, Ended& ended);

// Error(bad_input) where a launcher started this process as one of several: only `run` divides its work among them.
void require_one_process(const std::string& command);

// Runs the trainer with `words` and returns what it prints on stdout. Error(bad_input) as run_trainer().
std::string ask_trainer(const std::vector<std::string>& words, int& exit_code);

// How calls of plugins that do not return are reported on stderr; HEADROOM_STALL_SECONDS sets the time.
// Error(bad_input).
StallReport stall_report();

// Whether only the trainer can open the library: it needs LibTorch, or has no note that says whether it does.
bool needs_trainer(const std::filesystem::path& library);

// describe_plugin() of the library at `path`. Torch-free plugins are opened in this process, others by the trainer. The
// trainer's answer is kept in the user's cache folder, by the file's size and time.
nlohmann::json plugin_description(const std::filesystem::path& path);

// The plugins of an experiment with their option tables, and its options checked against them. Error(bad_input) as
// check_options().
struct CheckedPlugins {
  std::filesystem::path model, source;
  OptionTable model_table, data_table;
  OptionValues model_options, data_options;
  std::optional<std::pair<OptionTable, OptionValues>> synth;      // where there is a [data.synth]
  std::optional<std::pair<OptionTable, OptionValues>> optimizer;  // of one that a plugin offers
};
CheckedPlugins check_plugins(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

}  // namespace headroom
