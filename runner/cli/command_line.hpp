// cli/: one file per command, each declared here. The words of a command that needs LibTorch are defined once
// (define_run(), ...) and used by both programs: `headroom` parses them for errors and --help and hands over to
// `headroom-train`, which parses the same words and acts.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/check_list.hpp"

namespace headroom {

struct CommandLine {
  std::vector<std::string> arguments;              // as given, without the program's name
  std::vector<std::filesystem::path> plugin_dirs;  // --plugin-dir
  std::vector<std::string> behind_dashes;          // the words behind `--`, where they are another program's
  int exit_code = 0;
};

// Options that several commands share.
struct ExperimentWords {
  std::string file;
  std::vector<std::string> set;             // key=value
  std::vector<Override> overrides() const;  // Error(bad_input) for a word without '='
};
void add_experiment_words(CLI::App& command, ExperimentWords& words, bool file_required = true);
void add_plugin_dirs(CLI::App& command, CommandLine& line);
// Appends the same options, --set and --plugin-dir, to the words of another process.
void append_words(std::vector<std::string>& words, const ExperimentWords& experiment,
                  const std::vector<std::filesystem::path>& plugin_dirs);

struct RunWords {
  ExperimentWords experiment;
  std::string resume, out = "runs";
  bool no_plan = false, changed = false;
  int64_t until_epoch = 0;  // 0: to the run's own end
  int nproc = 1;            // processes
};
CLI::App* define_run(CLI::App& app, CommandLine& line, RunWords& words);

struct PlanWords {
  ExperimentWords experiment;
  std::string limit;  // in place of memory.limit
  bool json = false;
};
CLI::App* define_plan(CLI::App& app, CommandLine& line, PlanWords& words);

struct ProfileWords {
  ExperimentWords experiment;
  int64_t steps = 20;
  std::string trace;   // file; empty: none
  std::string folder;  // that the run goes to, from the torch-free program, which removes it
  bool all = false, json = false, no_plan = false;
};
CLI::App* define_profile(CLI::App& app, CommandLine& line, ProfileWords& words);

struct EvaluateWords {
  std::string run, split = "val", checkpoint = "best";
  std::vector<std::string> set;
  bool json = false;
};
CLI::App* define_evaluate(CLI::App& app, CommandLine& line, EvaluateWords& words);

struct PredictWords {
  std::string run, input, checkpoint = "best", out;
  std::vector<std::string> set;
  bool json = false;
};
CLI::App* define_predict(CLI::App& app, CommandLine& line, PredictWords& words);

struct ExportWords {
  std::string run, out, format = "safetensors", checkpoint = "best";
};
CLI::App* define_export(CLI::App& app, CommandLine& line, ExportWords& words);

struct ParityWords {
  std::string model, options, out, mode = "eval";
  std::vector<std::string> weights, fields, transposes;
  std::string batch;
  bool grad = false, fp64 = false;
};
CLI::App* define_parity(CLI::App& app, CommandLine& line, ParityWords& words);

// Commands of the torch-free program.
void add_validate(CLI::App& app, CommandLine& line);
void add_plugins(CLI::App& app, CommandLine& line);
// Also in the trainer, for LibTorch plugins. `check_model`: the trainer's checks of an experiment's model, or of the
// library's own where there is no experiment; empty in the torch-free program, which hands over what needs them.
using ModelCheck =
    std::function<std::vector<CheckResult>(const std::filesystem::path& library, const ExperimentWords& experiment,
                                           const std::vector<std::filesystem::path>& plugin_dirs)>;
void add_plugin_check(CLI::App& plugins, CommandLine& line, ModelCheck check_model);
// Error(bad_input) where a key is set and there is neither an experiment nor a model to set it of.
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

// `headroom run`, with its [rescue]: hands the run over to the trainer, and again for each rung as long as it ends with
// exit 5 or by the kernel's OOM killer and there is one. Returns the last exit code.
int run_with_rescue(const RunWords& words, const CommandLine& line);

// `headroom profile`: hands over to the trainer, whose run folder lies where nothing of it stays. Returns its exit
// code.
int profile_in_trainer(const ProfileWords& words, const CommandLine& line);

// `headroom export`: weights are written here, without LibTorch; the trainer writes a program. Returns the exit code.
int export_in_front(const ExportWords& words, const CommandLine& line);
// Error(bad_input) for a format that is not written, and for a file that is there.
void require_exportable(const ExportWords& words);

// What headroom-train does with the words it was given.
int run_action(const RunWords& words, const CommandLine& line);
int plan_action(const PlanWords& words, const CommandLine& line);
int profile_action(const ProfileWords& words, const CommandLine& line);
int evaluate_action(const EvaluateWords& words, const CommandLine& line);
int predict_action(const PredictWords& words, const CommandLine& line);
int export_action(const ExportWords& words, const CommandLine& line);
int parity_action(const ParityWords& words, const CommandLine& line);
std::vector<CheckResult> model_check_action(const std::filesystem::path& library, const ExperimentWords& experiment,
                                            const std::vector<std::filesystem::path>& plugin_dirs);

// `describe LIBRARY`, `check FILE` and `probe FILE`: what the torch-free program asks for.
void add_trainer_only(CLI::App& app, CommandLine& line);

// Parses and runs: prints errors as one line on stderr and returns the process's exit code.
int run_command_line(CLI::App& app, CommandLine& line, int argc, char** argv);

// The sentence for a bad_alloc that nobody could say more about, without allocating; returns its exit code.
int report_no_memory();

}  // namespace headroom
