#include <cstdio>

#include "cli/check_watch.hpp"
#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"
#include "plugins/conformance.hpp"
#include "plugins/library.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

std::string interface_names(const Json& description) {
  std::string names;
  for (const auto& [name, table] : description.at("interfaces").items()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void list(bool json, const CommandLine& line) {
  Json all = Json::array();
  for (const auto& path : list_plugins(line.plugin_dirs)) {
    try {
      all.push_back(plugin_description(path));
    } catch (const Error& problem) {
      // Listed with its reason: it hides none of the others.
      all.push_back({{"path", path.string()}, {"problem", problem.what()}});
    }
  }
  if (json) {
    std::printf("%s\n", json_text(all, 2).c_str());
    return;
  }
  for (const Json& plugin : all) {
    if (plugin.contains("problem")) {
      std::printf("%s\n  cannot be used: %s\n", plugin.at("path").get<std::string>().c_str(),
                  plugin.at("problem").get<std::string>().c_str());
      continue;
    }
    std::printf("%-16s %-8s %s\n  %s\n  %s\n", plugin.at("id").get<std::string>().c_str(),
                plugin.at("version").get<std::string>().c_str(), plugin.at("summary").get<std::string>().c_str(),
                interface_names(plugin).c_str(), plugin.at("path").get<std::string>().c_str());
  }
}

void print_options(const OptionTable& table, const std::string& indent) {
  // By the number of OptionType, which begins at 1.
  static constexpr const char* names[] = {"",      "bool", "integer", "number",           "string",
                                          "bytes", "path", "table",   "table of any keys"};
  for (const OptionSpec& option : table) {
    std::string type = names[static_cast<int>(option.type)];
    if (option.is_list) type = "list of " + type + "s";
    // " [1 .. 8]" or " fp32 | bf16": a range or choices.
    std::string allowed;
    if (option.min || option.max) allowed = " [" + option.min.value_or("") + " .. " + option.max.value_or("") + "]";
    for (size_t i = 0; i < option.choices.size(); ++i) allowed += (i ? " | " : " ") + option.choices[i];
    const std::string value = option.required        ? "required"
                              : option.default_value ? "= " + *option.default_value
                                                     : "optional";
    std::printf("%s%s (%s%s) %s\n%s    %s\n", indent.c_str(), option.name.c_str(), type.c_str(), allowed.c_str(),
                value.c_str(), indent.c_str(), option.help.c_str());
    print_options(option.table, indent + "    ");
  }
}

void show(const std::string& name, bool json, const CommandLine& line) {
  const Json plugin = plugin_description(find_plugin(name, line.plugin_dirs));
  if (json) {
    std::printf("%s\n", json_text(plugin, 2).c_str());
    return;
  }
  std::printf("%s %s: %s\n%s\n", plugin.at("id").get<std::string>().c_str(),
              plugin.at("version").get<std::string>().c_str(), plugin.at("summary").get<std::string>().c_str(),
              plugin.at("path").get<std::string>().c_str());
  for (const auto& [interface, table] : plugin.at("interfaces").items()) {
    std::printf("\n%s\n", interface.c_str());
    if (table.contains("options")) print_options(option_table_from_json(table.at("options")), "  ");
    std::string kinds;
    for (const auto& kind : table.value("recompute_kinds", Json::array()))
      kinds += (kinds.empty() ? "" : ", ") + kind.get<std::string>();
    if (!kinds.empty()) std::printf("  memory.recompute: %s\n", kinds.c_str());
  }
}

// How many checks failed.
int print_checks(const std::vector<CheckResult>& checks) {
  int failed = 0;
  for (const CheckResult& check : checks) {
    // By CheckResult::Outcome.
    static constexpr const char* words[] = {"ok  ", "FAIL", "skip"};
    std::printf("%s  %s%s%s\n", words[static_cast<int>(check.outcome)], check.name.c_str(),
                check.sentence.empty() ? "" : ": ", check.sentence.c_str());
    failed += check.outcome == CheckResult::Outcome::fail;
  }
  // What comes next may crash with the plugin.
  std::fflush(stdout);
  return failed;
}

std::vector<std::string> trainer_words(const std::filesystem::path& library, const ExperimentWords& with,
                                       const std::vector<std::filesystem::path>& plugin_dirs) {
  std::vector<std::string> words = {"plugins", "check", library.string()};
  if (!with.file.empty()) words.insert(words.end(), {"--with", with.file});
  append_words(words, with, plugin_dirs);
  return words;
}

}  // namespace

void refuse_options_without_model(const ExperimentWords& experiment, const std::string& plugin) {
  if (experiment.set.empty() || !experiment.file.empty()) return;
  throw Error(Exit::bad_input, "cli",
              "--set " + experiment.set.front() + ": " + plugin +
                  " is not a model, so there is no key to set; name an experiment with --with");
}

void add_plugin_check(CLI::App& plugins, CommandLine& line, ModelCheck check_model) {
  auto* command = plugins.add_subcommand("check", "Check a plugin; exit code 3 if a check fails");
  command->footer("Example: headroom plugins check build/my_model.so --with my.toml");
  auto path = std::make_shared<std::string>();
  command->add_option("path", *path, "Shared library, or the id of an installed plugin")->required();
  auto with = std::make_shared<ExperimentWords>();
  command->add_option("--with", with->file, "Experiment whose model steps through samples of its data");
  command->add_option("--set", with->set, "Override a key of that file, or of model.options without one: key=value")
      ->allow_extra_args(false);
  add_plugin_dirs(*command, line);
  command->callback([path, with, &line, check_model = std::move(check_model)] {
    const auto library = find_plugin(*path, line.plugin_dirs);
    std::vector<std::filesystem::path> folders = line.plugin_dirs;
    // The experiment of --with may name the plugins that were built beside this one.
    folders.push_back(library.parent_path());
    if (!check_model && (needs_trainer(library) || !with->file.empty())) {
      line.exit_code = run_trainer(trainer_words(library, *with, folders));
      return;
    }
    // Without LibTorch it is a datasource.
    if (!check_model) refuse_options_without_model(*with, library.filename().string());
    const CheckWatch watch(stall_report());
    int failed = print_checks(check_plugin(library));
    // A plugin that breaks the contract does not get to compute.
    if (failed == 0 && check_model) failed = print_checks(check_model(library, *with, folders));
    if (failed > 0) line.exit_code = static_cast<int>(Exit::plugin);
  });
}

void add_plugins(CLI::App& app, CommandLine& line) {
  auto* plugins = app.add_subcommand("plugins", "List plugins, show their options, check them")->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  auto* list_command = plugins->add_subcommand("list", "Every plugin found, and where");
  list_command->footer("Example: headroom plugins list");
  list_command->add_flag("--json", *json, "Print JSON");
  add_plugin_dirs(*list_command, line);
  list_command->callback([json, &line] { list(*json, line); });

  auto name = std::make_shared<std::string>();
  auto* show_command = plugins->add_subcommand("show", "Options of a plugin: defaults and allowed values");
  show_command->footer("Example: headroom plugins show tds_lstm");
  show_command->add_option("name", *name, "Id or path")->required();
  show_command->add_flag("--json", *json, "Print JSON");
  add_plugin_dirs(*show_command, line);
  show_command->callback([name, json, &line] { show(*name, *json, line); });
  add_plugin_check(*plugins, line, /*check_model=*/{});
  add_plugins_build(*plugins);
}

}  // namespace headroom
