// The commands, each in the file of its name: `headroom new` in new_plugin.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/trainer_words.hpp"
#include "plugins/check_list.hpp"

namespace headroom {

// Commands of the torch-free program.
void add_validate(CLI::App& app, CommandLine& line);
void add_plugins(CLI::App& app, CommandLine& line);
// Also in the trainer, for LibTorch plugins. `check_model`: the trainer's checks of an experiment's model, or of the
// library's own where there is no experiment. Empty in the torch-free program, which hands such plugins over.
using ModelCheck =
    std::function<std::vector<CheckResult>(const std::filesystem::path& library, const ExperimentWords& experiment,
                                           const std::vector<std::filesystem::path>& plugin_dirs)>;
void add_plugin_check(CLI::App& plugins, CommandLine& line, ModelCheck check_model);
// Error(bad_input) where --set is given without an experiment or a model that it could apply to.
void refuse_options_without_model(const ExperimentWords& experiment, const std::string& plugin);
void add_new(CLI::App& app);
void add_plugins_build(CLI::App& plugins);
void add_schema(CLI::App& app, CommandLine& line);
// The JSON Schema of experiment files, with the options of every plugin found.
std::string schema_text(const std::vector<std::filesystem::path>& plugin_dirs);
void add_data(CLI::App& app, CommandLine& line);
void add_data_convert(CLI::App& data, CommandLine& line);
void add_checkpoint(CLI::App& app);
void add_limits(CLI::App& app);
void add_postmortem(CLI::App& app);
void add_report(CLI::App& app);
void add_runs(CLI::App& app);
void add_sweep(CLI::App& app, CommandLine& line);
void add_watch(CLI::App& app, CommandLine& line);

// `headroom run` with [rescue]: hands the run over to the trainer. While it ends with exit 5 or is killed by the
// kernel's OOM killer, and a rung is left, applies the next rung and starts it again. With --nproc it starts the run's
// processes instead; one of several takes no rung. Returns the last exit code.
int run_with_rescue(const RunWords& words, const CommandLine& line);

// `headroom profile`: hands over to the trainer, with a temporary run folder that is removed afterwards. Returns its
// exit code.
int profile_in_trainer(const ProfileWords& words, const CommandLine& line);

// `headroom export`: writes weights in this process, without LibTorch; the trainer writes programs. Returns the exit
// code.
int export_in_front(const ExportWords& words, const CommandLine& line);
// Error(bad_input) for a format that cannot be written, and for a file that exists already.
void require_exportable(const ExportWords& words);

}  // namespace headroom
