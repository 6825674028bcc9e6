#include "config/sweep.hpp"

#include <algorithm>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"
#include "config/literals.hpp"
#include "memory/cores.hpp"
#include "record/run_folder.hpp"
#include "sweep/slurm_jobs.hpp"
#include "sweep/sweep.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

struct SweepWords {
  ExperimentWords experiment;
  std::string resume, out = "runs", on, folder_to;  // on: "": here; folder_to: file, "": none
  int jobs = 0;                                     // 0: auto
  bool no_plan = false;
};

SweepSection section_of(Experiment& experiment, const std::vector<Override>& overrides) {
  if (!experiment.sweep) {
    throw Error(Exit::bad_input, "sweep",
                experiment.file.string() +
                    " has no [sweep]: write the values to try there, as \"train.batch_size\" = "
                    "[8, 16], or use headroom run");
  }
  SweepSection sweep = read_sweep(*experiment.sweep);
  for (const Override& given : overrides) {
    // Every trial would lay its own value over it.
    if (std::ranges::find(sweep.keys, given.key, &SweptKey::path) != sweep.keys.end()) {
      throw Error(Exit::bad_input, "sweep",
                  "--set " + given.key + "=" + given.value + ": [sweep] tries values of " + given.key +
                      ": leave one of the two out, or set sweep.'" + given.key + "'=[" + given.value + "]");
    }
  }
  return sweep;
}

// Slurm decides how many of the jobs run at once, and a job has the CPUs that its threads need.
void leave_cores_to_slurm(SweepPlan& plan, const Experiment& experiment, int jobs) {
  const int trials = static_cast<int>(plan.trials.size());
  plan.jobs = jobs > 0 ? std::min(jobs, trials) : trials;
  plan.threads = std::max(1, experiment.experiment.threads);
}

// As many trials at once as there are cores for their threads; threads that the experiment leaves open share the cores.
void divide_cores(SweepPlan& plan, const Experiment& experiment, int jobs) {
  const int cores = auto_threads(), threads = experiment.experiment.threads;
  const int fit = threads > 0 ? std::max(1, cores / threads) : cores;
  plan.jobs = std::min(jobs > 0 ? jobs : fit, static_cast<int>(plan.trials.size()));
  plan.threads = threads > 0 ? threads : std::max(1, cores / plan.jobs);
}

std::string resolved(const Experiment& experiment, const std::vector<fs::path>& plugin_dirs) {
  const CheckedPlugins plugins = check_plugins(experiment, plugin_dirs);
  std::optional<toml::table> synth;
  if (plugins.synth) synth = options_to_toml(plugins.synth->first, plugins.synth->second);
  DecidedValues decided;
  if (plugins.optimizer)
    decided["train.optimizer_options"] = literal(options_to_toml(plugins.optimizer->first, plugins.optimizer->second));
  return experiment_to_toml(experiment, options_to_toml(plugins.model_table, plugins.model_options),
                            options_to_toml(plugins.data_table, plugins.data_options), synth, decided);
}

RunFolder begin_sweep(const SweepWords& words, const CommandLine& line) {
  const std::vector<Override> overrides = words.experiment.overrides();
  Experiment experiment = load_experiment(words.experiment.file, overrides);
  const SweepSection sweep = section_of(experiment, overrides);
  SweepPlan plan;
  plan.name = experiment.experiment.name;
  plan.file = experiment.file.string();
  plan.metric = experiment.experiment.metric;
  plan.set = words.experiment.set;
  plan.plan = !words.no_plan;
  plan.limit = experiment.memory.limit;
  plan.halving = halving_of(sweep, experiment);
  plan.trials = list_trials(sweep, experiment);
  // Absolute, because the sweep may be resumed from another working folder.
  for (const fs::path& dir : line.plugin_dirs) plan.plugin_dirs.push_back(fs::absolute(dir).lexically_normal());
  if (words.on == "slurm") {
    require_slurm();
    plan.slurm = line.behind_dashes;
    leave_cores_to_slurm(plan, experiment, words.jobs);
  } else {
    divide_cores(plan, experiment, words.jobs);
  }
  check_plugins(experiment, line.plugin_dirs);  // before there is a folder
  RunFolder folder = RunFolder::create(fs::absolute(words.out).lexically_normal(), plan.name);
  lay_out_sweep(folder.path(), plan, overrides,
                [&](const Experiment& trial) { return resolved(trial, line.plugin_dirs); });
  return folder;
}

Exit sweep(const SweepWords& words, const CommandLine& line) {
  if (words.resume.empty() == words.experiment.file.empty()) {
    throw Error(Exit::bad_input, "cli",
                "sweep needs an experiment file, or --resume with a sweep's folder, and not both: see headroom sweep "
                "--help");
  }
  if (words.resume.empty() && words.on != "slurm" && !line.behind_dashes.empty()) {
    throw Error(
        Exit::bad_input, "cli",
        "words behind -- are options of sbatch, as in headroom sweep FILE --on slurm -- --time=4:00:00: add --on "
        "slurm, or leave out " +
            line.behind_dashes.front());
  }
  // Trials run this very program.
  const fs::path program = fs::read_symlink("/proc/self/exe");
  // The folder lives until run_sweep() has returned, and with it its lock.
  if (words.resume.empty()) {
    const RunFolder folder = begin_sweep(words, line);
    folder.tell(words.folder_to);
    return run_sweep(folder.path(), program, 0);
  }
  if (!words.experiment.set.empty())
    throw Error(Exit::bad_input, "cli", "sweep --resume continues the sweep as it began: --set cannot be used with it");
  if (!words.on.empty())
    throw Error(Exit::bad_input, "cli",
                "sweep --resume continues the sweep where it began: --on cannot be used with it");
  // Refuses the folder of a run, which RunFolder::open() would take.
  read_sweep_plan(words.resume);
  const RunFolder folder = RunFolder::open(fs::absolute(words.resume));
  folder.tell(words.folder_to);
  return run_sweep(folder.path(), program, words.jobs, line.behind_dashes);
}

}  // namespace

void add_sweep(CLI::App& app, CommandLine& line) {
  auto* command = app.add_subcommand("sweep", "Many runs of one experiment, scheduled by memory");
  command->footer(
      "Examples: headroom sweep sweeps/batch_x_accumulation --jobs 2\n"
      "          headroom sweep FILE --on slurm -- --partition=gpu --time=4:00:00");
  auto words = std::make_shared<SweepWords>();
  add_experiment_words(*command, words->experiment, /*file_required=*/false);
  command->add_option("--resume", words->resume, "Folder of a sweep to continue (runs/<name>/<time>-<id>)");
  command->add_option("--out", words->out, "Parent folder of the sweep's folder")->capture_default_str();
  add_folder_to(*command, words->folder_to);
  command
      ->add_option("--on", words->on,
                   "slurm: trials are jobs of a Slurm cluster; options of sbatch may follow behind --")
      ->check(CLI::IsMember({"slurm"}));
  command
      ->add_option("--jobs", words->jobs,
                   "Largest number of trials at once; default: the number of cores, or all where they are jobs")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--no-plan", words->no_plan, "Start trials without predicting their memory first");
  add_plugin_dirs(*command, line);
  command->callback([words, &line] {
    // Its trials would wait for each other.
    require_one_process("sweep");
    line.exit_code = static_cast<int>(sweep(*words, line));
  });
}

}  // namespace headroom
