#include "cli/trainer_words.hpp"

#include <charconv>
#include <system_error>

namespace headroom {

namespace {

// For CLI11: "" where `word` is a number of steps.
std::string step_count_problem(const std::string& word) {
  constexpr int64_t most = 100'000;
  int64_t steps = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), steps);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  if (is_number && steps >= 1 && steps <= most) return "";
  return "expected a number of steps from 1 to " + std::to_string(most) + ", found '" + word + "'";
}

// Of a command that uses the model of a run.
void add_trained_model(CLI::App& command, std::string& run, std::string& checkpoint) {
  command.add_option("run", run, "Run folder")->required();
  command.add_option("--checkpoint", checkpoint, "best, last, or a checkpoint folder")->capture_default_str();
}

void add_run_overrides(CLI::App& command, std::vector<std::string>& set) {
  command.add_option("--set", set, "Override a key of the run's experiment")->allow_extra_args(false);
}

}  // namespace

CLI::App* define_run(CLI::App& app, CommandLine& line, RunWords& words) {
  auto* command = app.add_subcommand("run", "Train, validate, leave a run folder");
  command->footer("Example: headroom run quick_demo --set train.epochs=2");
  // --resume takes its file from the run; run_action() sees that one of the two is given.
  add_experiment_words(*command, words.experiment, /*file_required=*/false);
  auto* resume = command->add_option("--resume", words.resume, "Run folder to continue in (runs/<name>/<time>-<id>)");
  command->add_flag("--changed", words.changed, "Continue although --set or the data change the mathematics of the run")
      ->needs(resume);
  command->add_option("--out", words.out, "Parent folder of the run's folder")->capture_default_str();
  add_folder_to(*command, words.folder_to);
  command->add_flag("--no-plan", words.no_plan, "Start without predicting memory first (see headroom plan)");
  command->add_option("--nproc", words.nproc, "Processes of this machine that share each window (docs/processes.md)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--until-epoch", words.until_epoch,
                   "Save and stop (exit 75) at the end of this epoch; train.epochs and the schedule stay as they are")
      ->check(CLI::PositiveNumber);
  add_plugin_dirs(*command, line);
  return command;
}

CLI::App* define_plan(CLI::App& app, CommandLine& line, PlanWords& words) {
  auto* command = app.add_subcommand("plan", "Predict a run's memory, and what would make it fit");
  command->footer("Example: headroom plan quick_demo --limit \"600 MiB\"");
  add_experiment_words(*command, words.experiment);
  command->add_option("--limit", words.limit, "In place of memory.limit: auto, off, 80%, 8 GiB");
  command->add_flag("--json", words.json, "Print JSON");
  add_plugin_dirs(*command, line);
  return command;
}

CLI::App* define_profile(CLI::App& app, CommandLine& line, ProfileWords& words) {
  auto* command = app.add_subcommand("profile", "Where the time and memory of a step go");
  command->footer("Example: headroom profile quick_demo --steps 50 --trace trace.json");
  add_experiment_words(*command, words.experiment);
  command->add_option("--steps", words.steps, "Steps to measure, after 5 of warm-up")
      ->check(step_count_problem)
      ->capture_default_str();
  command->add_option("--trace", words.trace, "File for every span, which ui.perfetto.dev and chrome://tracing open");
  command->add_flag("--all", words.all, "Show all operators; otherwise the 20 that take longest by themselves");
  command->add_flag("--json", words.json, "Print JSON, with all operators");
  command->add_flag("--no-plan", words.no_plan, "Start without predicting memory first (see headroom plan)");
  add_plugin_dirs(*command, line);
  return command;
}

CLI::App* define_evaluate(CLI::App& app, CommandLine& line, EvaluateWords& words) {
  auto* command = app.add_subcommand("evaluate", "Loss and metrics of a finished run on a split");
  command->footer("Example: headroom evaluate runs/quick_demo/20261121-063011-3fa2 --split test");
  add_trained_model(*command, words.run, words.checkpoint);
  command->add_option("--split", words.split, "train, val or test")->capture_default_str();
  add_run_overrides(*command, words.set);
  command->add_flag("--json", words.json, "Print JSON");
  add_plugin_dirs(*command, line);
  return command;
}

CLI::App* define_predict(CLI::App& app, CommandLine& line, PredictWords& words) {
  auto* command = app.add_subcommand("predict", "What a run's model does on one recording, step by step");
  command->footer(
      "Example: headroom predict runs/act_quick_demo/20261121-063011-3fa2 --input data/act_quick_demo/episode_7.hdf5");
  add_trained_model(*command, words.run, words.checkpoint);
  command->add_option("--input", words.input, "Recording in the layout of the run's datasource")->required();
  command->add_option("--out", words.out, "Folder for what is written; default: RUN/predictions/<name of the input>");
  add_run_overrides(*command, words.set);
  command->add_flag("--json", words.json, "Print JSON");
  add_plugin_dirs(*command, line);
  return command;
}

CLI::App* define_export(CLI::App& app, CommandLine& line, ExportWords& words) {
  auto* command = app.add_subcommand("export", "Write a run's trained model for use elsewhere");
  command->footer("Example: headroom export runs/quick_demo/20261121-063011-3fa2 --out pose.safetensors");
  add_trained_model(*command, words.run, words.checkpoint);
  command
      ->add_option("--format", words.format,
                   "safetensors: weights, and in the metadata what is needed to use them; torchscript: the model as a "
                   "program that takes and gives measured units; onnx, pt2: that program, through python3 with torch")
      ->check(CLI::IsMember({"safetensors", "torchscript", "onnx", "pt2"}))
      ->capture_default_str();
  command->add_option("--out", words.out, "File to write")->required();
  add_plugin_dirs(*command, line);
  return command;
}

CLI::App* define_parity(CLI::App& app, CommandLine& line, ParityWords& words) {
  auto* command = app.add_subcommand("parity", "Compare a model plugin with another implementation, tensor by tensor");
  command->footer(
      "Example: headroom parity tds_lstm --options case.toml --weights case.safetensors:w/ --batch "
      "case.safetensors:in/ \\\n"
      "           --field valid=no_ik_failure --transpose emg=0,2,1 --transpose joint_angles=0,2,1 --grad --out "
      "ours.safetensors");
  command->add_option("model", words.model, "Model plugin: id or path")->required();
  command->add_option("--options", words.options, "TOML with [model.options] and [fields.NAME] (unit, sample_rate_hz)")
      ->required();
  command->add_option("--weights", words.weights, "FILE[:prefix[=PREFIX]] (safetensors); repeats")
      ->required()
      ->allow_extra_args(false);
  command->add_option("--batch", words.batch, "FILE[:prefix] (safetensors)")->required();
  command->add_option("--field", words.fields, "NAME=KEY: the batch key of a field; repeats")->allow_extra_args(false);
  command->add_option("--transpose", words.transposes, "FIELD=0,2,1: axes of a batch tensor; repeats")
      ->allow_extra_args(false);
  command->add_option("--mode", words.mode, "train or eval")
      ->check(CLI::IsMember({"train", "eval"}))
      ->capture_default_str();
  command->add_flag("--grad", words.grad, "Also write grad/<parameter> of loss_sum / weight");
  command->add_flag("--double", words.fp64, "Compute in float64");
  command->add_option("--out", words.out, "Safetensors file to write")->required();
  add_plugin_dirs(*command, line);
  return command;
}

}  // namespace headroom
