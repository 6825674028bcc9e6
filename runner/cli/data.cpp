#include <cstdio>

#include "cli/command_line.hpp"
#include "data/services.hpp"
#include "data/synth.hpp"
#include "plugins/library.hpp"

namespace headroom {

namespace {

void synthesise(const ExperimentWords& words, const CommandLine& line) {
  const Experiment experiment = load_experiment(words.file, words.overrides());
  if (!experiment.data_synth)
    throw Error(Exit::bad_input, "data.synth", words.file + " has no [data.synth] table: nothing to write");
  // Before a plugin is loaded (register_service).
  register_data_services();
  const Library source = Library::load(find_plugin(experiment.data.source, line.plugin_dirs));
  if (source.datasource() == nullptr) {
    throw Error(Exit::bad_input, "data.source", "'" + experiment.data.source + "' is not a datasource plugin");
  }
  const OptionTable table = to_option_table(source.datasource()->options);
  const OptionValues values =
      check_options(table, &experiment.data_options, "data.options", "datasource '" + source.id() + "'");
  const auto written = synthesise_missing(source, check_synth(source, experiment), table, values);
  if (written) {
    std::printf("wrote %s\n", written->c_str());
  } else {
    std::printf("%s is there already: left as it is\n", data_path(table, values)->c_str());
  }
}

}  // namespace

void add_data(CLI::App& app, CommandLine& line) {
  auto* data = app.add_subcommand("data", "Make, look at and convert data")->require_subcommand(1);
  auto* command = data->add_subcommand("synth", "Write the synthetic data of an experiment's [data.synth]");
  command->footer("Example: headroom data synth experiments/quick_demo.toml");
  auto words = std::make_shared<ExperimentWords>();
  add_experiment_words(*command, *words);
  add_plugin_dirs(*command, line);
  command->callback([words, &line] { synthesise(*words, line); });
  add_data_inspect(*data, line);
  add_data_convert(*data, line);
}

}  // namespace headroom
