#include "config/schema.hpp"

#include <cstdio>
#include <map>

#include "cli/command_line.hpp"
#include "cli/trainer_program.hpp"
#include "plugins/library.hpp"

namespace headroom {

std::string schema_text(const std::vector<std::filesystem::path>& plugin_dirs) {
  std::map<std::string, OptionTable> models, sources, optimizers;
  for (const auto& path : list_plugins(plugin_dirs)) {
    nlohmann::json plugin;
    try {
      plugin = plugin_description(path);
    } catch (const Error&) {
      continue;  // `plugins list` says why it cannot be used
    }
    const auto& interfaces = plugin.at("interfaces");
    const std::string id = plugin.at("id");
    if (interfaces.contains(HR_MODEL_TORCH))
      models[id] = option_table_from_json(interfaces.at(HR_MODEL_TORCH).at("options"));
    if (interfaces.contains(HR_DATASOURCE))
      sources[id] = option_table_from_json(interfaces.at(HR_DATASOURCE).at("options"));
    if (interfaces.contains(HR_OPTIMIZER))
      optimizers[id] = option_table_from_json(interfaces.at(HR_OPTIMIZER).at("options"));
  }
  return experiment_schema(models, sources, optimizers).dump(2);
}

void add_schema(CLI::App& app, CommandLine& line) {
  auto* command = app.add_subcommand("schema", "JSON Schema of experiment files, for editors");
  command->footer("Example: headroom schema > experiment.schema.json");
  add_plugin_dirs(*command, line);
  command->callback([&line] { std::printf("%s\n", schema_text(line.plugin_dirs).c_str()); });
}

}  // namespace headroom
