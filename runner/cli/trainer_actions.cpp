#include "cli/trainer_actions.hpp"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "config/sizes.hpp"
#include "plan/plan_run.hpp"
#include "plan/probe.hpp"
#include "plugins/describe.hpp"
#include "plugins/library.hpp"
#include "profile/step_profile.hpp"
#include "ranks/group.hpp"
#include "record/run_folder.hpp"
#include "train/commands.hpp"
#include "train/export_script.hpp"
#include "train/parity.hpp"
#include "train/run_data.hpp"
#include "train/shortage.hpp"
#include "train/train.hpp"

namespace headroom {

namespace {

// The probe is a child: it loads the experiment by the same words.
ProbeWords probe_words(const ExperimentWords& experiment, const CommandLine& line) {
  ProbeWords words = {"probe", experiment.file};
  append_words(words, experiment, line.plugin_dirs);
  return words;
}

}  // namespace

int run_action(const RunWords& words, const CommandLine& line) {
  if (words.resume.empty() == words.experiment.file.empty()) {
    throw Error(Exit::bad_input, "cli",
                "run needs an experiment file, or --resume with a run folder, and not both: see headroom run --help");
  }
  TrainRequest request;
  if (words.resume.empty()) {
    request.experiment = load_experiment(words.experiment.file, words.experiment.overrides());
  } else {
    request.resume = words.resume;
    const auto file = std::filesystem::path(words.resume) / "experiment.toml";
    // Said here, where it is known that --resume is meant.
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      throw Error(
          Exit::bad_input, "cli",
          "--resume " + words.resume + ": no experiment.toml there: give a run's own folder, runs/<name>/<time>-<id>");
    }
    request.experiment = load_experiment(file, words.experiment.overrides());
  }
  request.changed = words.changed;
  request.out = words.out;
  request.folder_to = words.folder_to;
  request.plugin_dirs = line.plugin_dirs;
  request.until_epoch = words.until_epoch;
  request.group = join_group(ranks_from_environment());
  // Each of several would measure for itself.
  if (!words.no_plan && words.resume.empty() && request.group == nullptr) {
    request.plan = [&](const RunData& data) { return plan_start(data, probe_words(words.experiment, line)); };
  }
  return static_cast<int>(train(request));
}

int plan_action(const PlanWords& words, const CommandLine& line) {
  const Experiment experiment = load_experiment(words.experiment.file, words.experiment.overrides());
  const auto limit = words.limit.empty() ? experiment.memory.limit : parse_limit(words.limit);
  if (!limit) {
    throw Error(Exit::bad_input, "cli",
                "--limit " + words.limit + ": expected auto, off, a share such as 80% or a size such as \"8 GiB\"");
  }
  const RunData data = prepare_data(experiment, line.plugin_dirs);
  const Plan plan = plan_for(data, *limit, probe_words(words.experiment, line));
  if (words.json) {
    std::printf("%s\n", json_text(plan.json(), 2).c_str());
  } else {
    std::printf("%s", plan.text(experiment).c_str());
  }
  // Exit 5 comes behind the answer: a sweep reads the table all the same.
  return static_cast<int>(plan.something_fits() ? Exit::ok : Exit::does_not_fit);
}

int profile_action(const ProfileWords& words, const CommandLine& line) {
  ProfileRequest request;
  request.steps = words.steps;
  request.trace = words.trace;
  request.run.experiment = load_experiment(words.experiment.file, words.experiment.overrides());
  request.run.out = words.folder;
  request.run.plugin_dirs = line.plugin_dirs;
  if (!words.no_plan)
    request.run.plan = [&](const RunData& data) { return plan_start(data, probe_words(words.experiment, line)); };
  Profile profile;
  const Exit exit = profile_run(std::move(request), profile);
  if (exit != Exit::ok) return static_cast<int>(exit);
  constexpr size_t operators_shown = 20;
  const std::string text = words.json
                               ? profile.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                               : profile.text(words.all ? SIZE_MAX : operators_shown);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int evaluate_action(const EvaluateWords& words, const CommandLine& line) {
  const ExperimentWords experiment{.file = "", .set = words.set};
  return static_cast<int>(evaluate_run({.run = words.run,
                                        .split = words.split,
                                        .checkpoint = words.checkpoint,
                                        .overrides = experiment.overrides(),
                                        .plugin_dirs = line.plugin_dirs,
                                        .json = words.json}));
}

int predict_action(const PredictWords& words, const CommandLine& line) {
  const ExperimentWords experiment{.file = "", .set = words.set};
  return static_cast<int>(predict_run({.run = words.run,
                                       .input = words.input,
                                       .checkpoint = words.checkpoint,
                                       .out = words.out,
                                       .overrides = experiment.overrides(),
                                       .plugin_dirs = line.plugin_dirs,
                                       .json = words.json}));
}

int export_action(const ExportWords& words, const CommandLine& line) {
  require_exportable(words);
  return static_cast<int>(export_script(
      {.run = words.run, .checkpoint = words.checkpoint, .out = words.out, .plugin_dirs = line.plugin_dirs}));
}

int parity_action(const ParityWords& words, const CommandLine& line) {
  ParityRequest request{.model = words.model,
                        .plugin_dirs = line.plugin_dirs,
                        .options = words.options,
                        .weights = {},
                        .batch = TensorSelection::parse(words.batch),
                        .fields = {},
                        .transpositions = {},
                        .train = words.mode == "train",
                        .gradients = words.grad,
                        .fp64 = words.fp64,
                        .out = words.out};
  for (const std::string& word : words.weights) request.weights.push_back(TensorSelection::parse(word));
  for (const std::string& word : words.fields) request.add_field(word);
  for (const std::string& word : words.transposes) request.add_transposition(word);
  const ParityResult result = run_parity(request);
  // Nine digits tell every float32 from the next.
  std::printf("loss %.9g over %.9g elements; %zu tensors in %s\n", result.loss_sum / result.weight, result.weight,
              result.tensors, words.out.c_str());
  return 0;
}

std::vector<CheckResult> model_check_action(const std::filesystem::path& library, const ExperimentWords& experiment,
                                            const std::vector<std::filesystem::path>& plugin_dirs) {
  if (!experiment.file.empty()) return check_model(experiment.file, experiment.overrides(), plugin_dirs);
  const Library plugin = Library::load(library);
  if (plugin.model_torch() != nullptr) return check_model_alone(plugin, experiment.overrides());
  refuse_options_without_model(experiment, plugin.id());
  return {};
}

void add_trainer_only(CLI::App& app, CommandLine& line) {
  // What these three print on stdout is JSON for whoever started them, and nothing else.
  auto* describe = app.add_subcommand("describe", "Tables of one plugin as JSON");
  auto library = std::make_shared<std::string>();
  describe->add_option("library", *library)->required();
  describe->callback(
      within_memory([library] { std::printf("%s\n", json_text(describe_plugin(Library::load(*library))).c_str()); }));

  auto* probe = app.add_subcommand("probe", "Measure a short run, for a plan");
  auto probed = std::make_shared<ExperimentWords>();
  auto folder = std::make_shared<std::string>();
  add_experiment_words(*probe, *probed);
  add_plugin_dirs(*probe, line);
  probe->add_option("--folder", *folder, "where its checkpoint goes")->required();
  probe->callback(within_memory([probed, folder, &line] {
    const Experiment experiment = load_experiment(probed->file, probed->overrides());
    std::printf("%s\n", run_probe(experiment, line.plugin_dirs, *folder).json().dump().c_str());
  }));

  auto* check = app.add_subcommand("check", "Build everything that a run needs, then exit");
  auto words = std::make_shared<ExperimentWords>();
  add_experiment_words(*check, *words);
  add_plugin_dirs(*check, line);
  check->callback(within_memory([words, &line] {
    line.exit_code =
        static_cast<int>(check_experiment(load_experiment(words->file, words->overrides()), line.plugin_dirs));
  }));
}

}  // namespace headroom
