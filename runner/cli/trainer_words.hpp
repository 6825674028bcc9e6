// The words of the commands that need LibTorch, defined once for both programs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace headroom {

struct RunWords {
  ExperimentWords experiment;
  std::string resume, out = "runs", folder_to;  // folder_to: file; empty: none
  bool no_plan = false, changed = false;
  int nproc = 1;            // processes
  int64_t until_epoch = 0;  // 0: to the run's own end
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

}  // namespace headroom
