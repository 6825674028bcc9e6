#include "config/rescue.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"
#include "plugins/library.hpp"
#include "ranks/launch.hpp"
#include "ranks/ranks.hpp"
#include "record/checkpoint.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

// A run's folder has the experiment as it ran, with the rungs taken so far.
Experiment experiment_of(const RunWords& run) {
  const fs::path file = run.resume.empty() ? fs::path(run.experiment.file) : fs::path(run.resume) / "experiment.toml";
  return load_experiment(file, run.experiment.overrides());
}

std::vector<std::string> words_of(const RunWords& run, const CommandLine& line) {
  std::vector<std::string> words = {"run"};
  if (run.resume.empty()) {
    words.insert(words.end(), {run.experiment.file, "--out", run.out});
    if (run.no_plan) words.emplace_back("--no-plan");
  } else {
    words.insert(words.end(), {"--resume", run.resume});
    if (run.changed) words.emplace_back("--changed");
  }
  if (!run.folder_to.empty()) words.insert(words.end(), {"--folder-to", run.folder_to});
  if (run.until_epoch > 0) words.insert(words.end(), {"--until-epoch", std::to_string(run.until_epoch)});
  append_words(words, run.experiment, line.plugin_dirs);
  return words;
}

// The same run, which goes on in its folder. --set is in the experiment there already.
RunWords in_folder(RunWords run, const fs::path& folder) {
  run.resume = folder.string();
  run.experiment.set.clear();
  return run;
}

bool couples_samples(const Experiment& experiment, const CommandLine& line) {
  const nlohmann::json description = plugin_description(find_plugin(experiment.model_plugin, line.plugin_dirs));
  const auto model = description.at("interfaces").find(HR_MODEL_TORCH);
  if (model == description.at("interfaces").end()) return false;
  for (const auto& capability : model->at("capabilities")) {
    if (capability == "couples_samples") return true;
  }
  return false;
}

// The same run with one more rung; nullopt: there is none. Where it trained already it goes on in its folder, unless
// the folder has a checkpoint of other mathematics.
std::optional<RunWords> with_next_rung(RunWords run, const Ended& ended, const CommandLine& line) {
  if (!ended.run_folder.empty()) run = in_folder(std::move(run), ended.run_folder);
  const Experiment experiment = experiment_of(run);
  if (!experiment.rescue || experiment.rescue->rungs.empty()) return std::nullopt;
  const auto& rungs = experiment.rescue->rungs;
  const auto next = static_cast<size_t>(experiment.rescue->taken);
  const char* const why = ended.oom_kill ? "it was killed for lack of memory" : "it does not fit";
  if (next == rungs.size()) {
    std::fprintf(stderr, "[rescue] %s, and no rung is left: %zu of %zu are taken\n", why, next, rungs.size());
    return std::nullopt;
  }
  const bool keeps = keeps_mathematics(*experiment.rescue, next, couples_samples(experiment, line));
  const bool has_checkpoint = !run.resume.empty() && Checkpoints(fs::path(run.resume) / "checkpoints").last();
  const bool in_new_folder = has_checkpoint && !keeps;
  std::fprintf(stderr, "[rescue] %s: rung %zu of %zu, %s; %s; it %s\n", why, next + 1, rungs.size(),
               rung_text(rungs[next]).c_str(), keeps ? "this keeps the mathematics" : "this changes the mathematics",
               in_new_folder    ? "starts again in another folder"
               : has_checkpoint ? "continues from the last checkpoint"
                                : "starts again");
  if (in_new_folder) {
    const fs::path folder = fs::absolute(named_folder(run.resume));
    run.experiment.file = (folder / "experiment.toml").string();
    // The folder was <out>/<name>/<time>-<id>.
    run.out = folder.parent_path().parent_path().string();
    run.resume.clear();
  }
  run.experiment.set.push_back("rescue.taken=" + std::to_string(next + 1));
  return run;
}

// Without any, the run ends with the first process that is lost. What is wrong with the experiment its processes say.
Elasticity elasticity(const RunWords& words, const CommandLine& line) try {
  const TrainSection train = experiment_of(words).train;
  if (!train.elastic) return {};
  const auto number = [](int64_t value) { return static_cast<int>(std::min<int64_t>(value, INT_MAX)); };
  const auto resuming = [words, line](const fs::path& run) { return words_of(in_folder(words, run), line); };
  return {.least = number(train.elastic_min), .restarts = number(train.elastic_restarts), .resuming_words = resuming};
} catch (const Error&) {
  return {};
}

}  // namespace

int run_with_rescue(const RunWords& words, const CommandLine& line) {
  const Ranks ranks = ranks_from_environment();
  if (words.nproc > 1 && ranks.alone())
    return launch_ranks(fs::read_symlink("/proc/self/exe"), line.arguments, words.nproc, elasticity(words, line));
  // The others could not follow.
  if (!ranks.alone()) return run_trainer(line.arguments);
  Ended ended;
  int exit_code = run_trainer(line.arguments, ended);
  std::optional<RunWords> run = words;
  while (exit_code == static_cast<int>(Exit::does_not_fit) || ended.oom_kill) {
    run = with_next_rung(*run, ended, line);
    if (!run) break;
    exit_code = run_trainer(words_of(*run, line), ended);
  }
  return exit_code;
}

}  // namespace headroom
