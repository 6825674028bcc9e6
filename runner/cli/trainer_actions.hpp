// What headroom-train does with the words it was given.
#pragma once

#include "cli/command_line.hpp"

namespace headroom {

int run_action(const RunWords& words, const CommandLine& line);
int plan_action(const PlanWords& words, const CommandLine& line);
int evaluate_action(const EvaluateWords& words, const CommandLine& line);
int predict_action(const PredictWords& words, const CommandLine& line);
int parity_action(const ParityWords& words, const CommandLine& line);

// `describe LIBRARY`, `check FILE` and `probe FILE`: what the torch-free program asks for.
void add_trainer_only(CLI::App& app, CommandLine& line);

}  // namespace headroom
