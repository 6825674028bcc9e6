#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <vector>

#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"
#include "data/synth.hpp"
#include "memory/readable.hpp"
#include "record/numbers.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

// Whether the data would have to be written first; then nothing of it can be checked yet.
bool data_missing(const Experiment& experiment, const CheckedPlugins& plugins) {
  const auto path = data_path(plugins.data_table, plugins.data_options);
  std::error_code error;
  return experiment.data_synth && path && !std::filesystem::exists(*path, error);
}

// "train: circle 375 (50.0 %), star 375 (50.0 %); val: ...", of a class the first twenty.
std::string balance_text(const nlohmann::json& balance) {
  constexpr size_t most_shown = 20;
  std::string text;
  for (const char* split : {"train", "val"}) {
    const nlohmann::json& counted = balance.at(split);
    const auto counts = counted.at("counts").get<std::vector<uint64_t>>();
    const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
    if (all == 0) continue;
    text += (text.empty() ? "" : "; ") + std::string(split);
    if (counted.at("samples") != counted.at("of")) text += " (" + counted.at("samples").dump() + " samples)";
    for (size_t c = 0; c < std::min(counts.size(), most_shown); ++c) {
      const std::string name =
          balance.contains("names") ? balance.at("names").at(c).get<std::string>() : std::to_string(c);
      text += (c == 0 ? ": " : ", ") + printable(name, 40) + " " + std::to_string(counts[c]) + " (" +
              short_number(100 * static_cast<double>(counts[c]) / all, 3) + " %)";
    }
    if (counts.size() > most_shown) text += " and " + std::to_string(counts.size() - most_shown) + " more";
  }
  return text;
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

void print_classes(const nlohmann::json& found) {
  const nlohmann::json classes = found.value("classes", nlohmann::json::object()),
                       warnings = found.value("warnings", nlohmann::json::array());
  for (const auto& [output, balance] : classes.items()) {
    const std::string text = balance.at("field").get<std::string>() + ", " + balance_text(balance);
    std::printf("  %-10s %s\n", "classes", text.c_str());
  }
  for (const auto& warning : warnings) std::printf("  warning: %s\n", warning.get<std::string>().c_str());
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
    if (key == "file" || key == "valid" || key == "warnings" || key == "classes") continue;
    std::printf("  %-10s %s\n", key.c_str(), shown(key, value).c_str());
  }
  print_classes(found);
  for (const Inert& inert : experiment.inert) std::printf("  %s: %s\n", inert.key.c_str(), inert.why.c_str());
}

}  // namespace

void add_validate(CLI::App& app, CommandLine& line) {
  auto* command =
      app.add_subcommand("validate", "Check an experiment file down to the plugins' options and the data's fields");
  command->footer("Example: headroom validate quick_demo");
  auto words = std::make_shared<ExperimentWords>();
  auto json = std::make_shared<bool>(false);
  add_experiment_words(*command, *words);
  command->add_flag("--json", *json, "Print JSON");
  add_plugin_dirs(*command, line);
  command->callback([words, json, &line] { validate(*words, *json, line); });
}

}  // namespace headroom
