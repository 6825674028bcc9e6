#include <cstdio>
#include <filesystem>

#include "cli/command_line.hpp"
#include "cli/trainer_program.hpp"
#include "data/synth.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

// Whether the data would have to be written first; then nothing of it can be checked yet.
bool data_missing(const Experiment& experiment, const CheckedPlugins& plugins) {
  const auto path = data_path(plugins.data_table, plugins.data_options);
  std::error_code error;
  return experiment.data_synth && path && !std::filesystem::exists(*path, error);
}

// For reading: "emg float32 [500,16], valid uint8 [500]" of fields, "120 train, 40 val" of samples.
std::string shown(const std::string& key, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (key == "fields") {
    for (const auto& field : value) {
      const std::string unit = field.at("unit");
      add(field.at("name").get<std::string>() + " " + field.at("dtype").get<std::string>() + " " +
          field.at("shape").dump() + (unit.empty() ? "" : " " + unit));
    }
  } else if (key == "samples") {
    for (const char* split : {"train", "val", "test"}) add(value.at(split).dump() + " " + split);
  }
  return text.empty() ? value.dump() : text;
}

void validate(const ExperimentWords& words, bool json, const CommandLine& line) {
  const Experiment experiment = load_experiment(words.file, words.overrides());
  const CheckedPlugins plugins = check_plugins(experiment, line.plugin_dirs);
  nlohmann::json found = {{"file", words.file},
                          {"valid", true},
                          {"name", experiment.experiment.name},
                          {"model", plugins.model.string()},
                          {"source", plugins.source.string()}};
  if (data_missing(experiment, plugins)) {
    found["data"] = "not there yet: [data.synth] writes it when the run starts";
  } else {
    // The trainer builds model and data as a run would, and answers in JSON.
    std::vector<std::string> arguments{"check", words.file};
    append_words(arguments, words, line.plugin_dirs);
    int exit_code = 0;
    const std::string text = ask_trainer(arguments, exit_code);
    if (exit_code != 0)
      throw Error(static_cast<Exit>(exit_code), "validate",
                  words.file + " does not hold with its data and model (see above)");
    found.update(nlohmann::json::parse(text));
  }
  if (json) {
    std::printf("%s\n", json_text(found, 2).c_str());
    return;
  }
  std::printf("%s: valid\n", words.file.c_str());
  for (const auto& [key, value] : found.items()) {
    if (key == "file" || key == "valid") continue;
    std::printf("  %-10s %s\n", key.c_str(), shown(key, value).c_str());
  }
  for (const Inert& inert : experiment.inert) std::printf("  %s: %s\n", inert.key.c_str(), inert.why.c_str());
}

}  // namespace

void add_validate(CLI::App& app, CommandLine& line) {
  auto* command =
      app.add_subcommand("validate", "Check an experiment file down to the plugins' options and the data's fields");
  command->footer("Example: headroom validate experiments/quick_demo.toml");
  auto words = std::make_shared<ExperimentWords>();
  auto json = std::make_shared<bool>(false);
  add_experiment_words(*command, *words);
  command->add_flag("--json", *json, "Print JSON");
  add_plugin_dirs(*command, line);
  command->callback([words, json, &line] { validate(*words, *json, line); });
}

}  // namespace headroom
