// The front's way to libexec/headroom-train: hand a whole command over, or ask it what a LibTorch plugin declares.
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

// What plugins outside this tree are built with: the root of an installed SDK, <executable>/../sdk in the build folder.
// Error(bad_input) where there is none.
std::filesystem::path sdk_folder();

// Hands `words` over to the trainer and waits. Returns the exit code; a post-mortem has been made where there was need,
// and the run's report.html. `ended`: how, and where it trained.
int run_trainer(const std::vector<std::string>& words);
int run_trainer(const std::vector<std::string>& words, Ended& ended);

// Error(bad_input) where a launcher started this process as one of several: `run` alone divides its work among them.
void require_one_process(const std::string& command);

// What the trainer answers on stdout.
std::string ask_trainer(const std::vector<std::string>& words, int& exit_code);

// How a plugin's call that does not return is told on stderr, by HEADROOM_STALL_SECONDS. Error(bad_input).
StallReport stall_report();

// Whether the trainer has to open the library: it needs LibTorch, or has no note that says whether it does.
bool needs_trainer(const std::filesystem::path& library);

// What describe_plugin() says of the library at `path`. Torch-free plugins are opened here; others by the trainer, and
// the answer is kept under the user's cache folder by the file's size and time.
nlohmann::json plugin_description(const std::filesystem::path& path);

// The option tables an experiment needs, checked against it. Error(bad_input) as check_options.
struct CheckedPlugins {
  std::filesystem::path model, source;
  OptionTable model_table, data_table;
  OptionValues model_options, data_options;
  std::optional<std::pair<OptionTable, OptionValues>> synth;      // where there is a [data.synth]
  std::optional<std::pair<OptionTable, OptionValues>> optimizer;  // of one that a plugin offers
};
CheckedPlugins check_plugins(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

}  // namespace headroom
