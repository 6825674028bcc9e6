// What `headroom-train` does with the words it was given.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/trainer_words.hpp"
#include "plugins/check_list.hpp"

namespace headroom {

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

}  // namespace headroom
