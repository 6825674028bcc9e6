#include "cli/trainer_program.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/trainer_libraries.hpp"
#include "config/digest.hpp"
#include "config/rescue.hpp"
#include "config/rules.hpp"
#include "config/sweep.hpp"
#include "config/user_cache.hpp"
#include "plugins/describe.hpp"
#include "plugins/library.hpp"
#include "plugins/optimizer_plugin.hpp"
#include "ranks/members.hpp"
#include "ranks/ranks.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"
#include "report/run_report.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

// Where the description of this very file is kept; empty when there is no place to keep it.
fs::path cached_description(const fs::path& library) {
  struct stat info {};
  const fs::path folder = user_cache("plugins");
  if (folder.empty() || stat(library.c_str(), &info) != 0) return {};
  Digest digest;
  // A library that is built again has another time, if not another size.
  digest.add(fs::canonical(library).string()).add(std::to_string(info.st_size));
  digest.add(std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec));
  return folder / (digest.hex() + ".json");
}

nlohmann::json description_by_trainer(const fs::path& library) {
  const fs::path kept = cached_description(library);
  // A damaged answer is asked for again.
  if (const auto json = read_json_file(kept); json.is_object()) return json;
  int exit_code = 0;
  const std::string text = ask_trainer({"describe", library.string()}, exit_code);
  if (exit_code != 0)
    throw Error(static_cast<Exit>(exit_code), "plugins", "cannot open " + library.string() + " (see above)");
  if (!kept.empty()) keep_in_cache(kept, text);
  return nlohmann::json::parse(text);
}

OptionTable table_of(const nlohmann::json& description, const std::string& interface, const std::string& key,
                     const std::string& name) {
  const auto& interfaces = description.at("interfaces");
  const auto found = interfaces.find(interface);
  if (found == interfaces.end())
    throw Error(Exit::bad_input, key, "'" + name + "' has no " + interface + ": see headroom plugins list");
  return option_table_from_json(found->at("options"));
}

}  // namespace

fs::path trainer_program() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "libexec" / "headroom-train";
}

fs::path sdk_folder() {
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  // The build folder has the SDK in sdk/; an installed one is the root itself.
  for (const fs::path& folder : {beside / "sdk", beside}) {
    if (fs::exists(folder / "share/headroom/templates")) return folder;
  }
  throw Error(Exit::bad_input, "plugins",
              "this program has no SDK beside it: install it with cmake --install BUILD --component sdk --prefix " +
                  beside.string());
}

int run_trainer(const std::vector<std::string>& words) {
  Ended ended;
  return run_trainer(words, ended);
}

int run_trainer(const std::vector<std::string>& words, Ended& ended) {
  if (words.front() != "run") require_one_process(words.front());
  const StallReport stall = stall_report();
  require_libraries(trainer_program());
  ended = supervise(trainer_program(), words, stall);
  const int exit_code = conclude(ended);
  // Behind the post-mortem, which the report repeats.
  const fs::path& run = ended.run_folder;
  if (!run.empty() && ranks_from_environment().rank == first_rank_of(run)) try_to_write_run_report(run);
  return exit_code;
}

void require_one_process(const std::string& command) {
  const Ranks ranks = ranks_from_environment();
  if (ranks.alone()) return;
  throw Error(Exit::bad_input, "ranks",
              ranks.launcher + " started headroom " + command + " as " + std::to_string(ranks.count) +
                  " processes, and each would do all of it: start it once; only headroom run is divided among "
                  "processes (docs/processes.md)");
}

std::string ask_trainer(const std::vector<std::string>& words, int& exit_code) {
  require_libraries(trainer_program());
  Ended ended;
  std::string answer = output_of(trainer_program(), words, ended);
  exit_code = conclude(ended);
  return answer;
}

// HEADROOM_STALL_SECONDS: after how long without progress that is said; 60 unless set, 0: never.
StallReport stall_report() {
  StallReport report;
  if (const char* set = std::getenv("HEADROOM_STALL_SECONDS")) {
    const std::string text = set;
    if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos)
      throw Error(Exit::bad_input, "HEADROOM_STALL_SECONDS",
                  "'" + text + "' is not a number of seconds from 0 to 999999 (0: never)");
    report.after = std::chrono::seconds(std::stoi(text));
  }
  if (report.after.count() == 0) return report;
  report.tell = [](const std::string& clause) {
    // On a terminal the trainer's progress line is in its place. No component in brackets: it is no error, and a sweep
    // takes such a line for why a trial failed.
    std::fprintf(stderr, "%s%s; it goes on waiting, Ctrl-C ends it\n", isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "",
                 clause.c_str());
  };
  return report;
}

bool needs_trainer(const fs::path& library) {
  const auto note = read_note(library);
  return !note || (note->flags & HR_PLUGIN_TORCH) != 0;
}

nlohmann::json plugin_description(const fs::path& path) {
  return needs_trainer(path) ? description_by_trainer(path) : describe_plugin(Library::load(path));
}

CheckedPlugins check_plugins(const Experiment& experiment, const std::vector<fs::path>& plugin_dirs) {
  CheckedPlugins checked;
  checked.model = find_plugin(experiment.model_plugin, plugin_dirs);
  checked.source = find_plugin(experiment.data.source, plugin_dirs);
  const nlohmann::json model = plugin_description(checked.model);
  checked.model_table = table_of(model, HR_MODEL_TORCH, "model.plugin", experiment.model_plugin);
  check_precision(experiment.train.precision,
                  model.at("interfaces").at(HR_MODEL_TORCH).at("capabilities").get<std::vector<std::string>>(),
                  experiment.model_plugin);
  const nlohmann::json source = plugin_description(checked.source);
  checked.data_table = table_of(source, HR_DATASOURCE, "data.source", experiment.data.source);
  const std::string model_owner = "model '" + experiment.model_plugin + "'",
                    source_owner = "datasource '" + experiment.data.source + "'";
  checked.model_options = check_options(checked.model_table, &experiment.model_options, "model.options", model_owner);
  checked.data_options = check_options(checked.data_table, &experiment.data_options, "data.options", source_owner);
  if (experiment.data_synth) {
    OptionTable table = table_of(source, HR_SYNTH, "data.synth", experiment.data.source);
    OptionValues values = check_options(table, &*experiment.data_synth, "data.synth", source_owner);
    checked.synth.emplace(std::move(table), std::move(values));
  }
  const std::string optimizer_options = "train.optimizer_options",
                    optimizer_owner = "optimizer '" + experiment.train.optimizer.name + "'";
  if (const auto optimizer = find_optimizer(experiment.train.optimizer, plugin_dirs)) {
    OptionTable table =
        table_of(plugin_description(*optimizer), HR_OPTIMIZER, "train.optimizer.name", experiment.train.optimizer.name);
    OptionValues values = check_options(table, &experiment.train.optimizer_options, optimizer_options, optimizer_owner);
    checked.optimizer.emplace(std::move(table), std::move(values));
  }
  // Their keys among the plugins' options are checked here: config/ does not know the tables of plugins.
  if (experiment.rescue) {
    check_rung_options(checked.model_table, *experiment.rescue, "model.options", model_owner);
    check_rung_options(checked.data_table, *experiment.rescue, "data.options", source_owner);
    if (checked.optimizer)
      check_rung_options(checked.optimizer->first, *experiment.rescue, optimizer_options, optimizer_owner);
  }
  if (experiment.sweep) {
    check_swept_options(checked.model_table, *experiment.sweep, "model.options", model_owner);
    check_swept_options(checked.data_table, *experiment.sweep, "data.options", source_owner);
    if (checked.optimizer)
      check_swept_options(checked.optimizer->first, *experiment.sweep, optimizer_options, optimizer_owner);
  }
  return checked;
}

}  // namespace headroom
