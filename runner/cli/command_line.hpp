// cli/: the two programs, `headroom` (main.cpp) and `headroom-train` (train_main.cpp). This is its front door: what
// every command shares.
//   commands.hpp         the commands, one file each
//   trainer_words.hpp    the words of commands that need LibTorch: `headroom` parses them for errors and --help and
//                        hands over to `headroom-train`, which parses the same words and acts
//   trainer_actions.hpp  how `headroom-train` acts
//   trainer_program.hpp  how `headroom` starts it
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

struct CommandLine {
  std::vector<std::string> arguments;              // as given, without the program's name
  std::vector<std::filesystem::path> plugin_dirs;  // --plugin-dir
  std::vector<std::string> behind_dashes;          // the words after `--`, where they are another program's
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
void add_folder_to(CLI::App& command, std::string& file);
// Appends these options, --set and --plugin-dir, to the arguments of another process.
void append_words(std::vector<std::string>& words, const ExperimentWords& experiment,
                  const std::vector<std::filesystem::path>& plugin_dirs);

// Parses the command line and runs the command. Prints an error as one line on stderr. Returns the process's exit code.
int run_command_line(CLI::App& app, CommandLine& line, int argc, char** argv);

// Prints, without allocating, the sentence for a bad_alloc that nothing else reported. Returns its exit code.
int report_no_memory();

}  // namespace headroom
