#include <cstdio>
#include <nlohmann/json.hpp>

#include "record/run_folder.hpp"
#include "train/class_balance.hpp"
#include "train/commands.hpp"
#include "train/init.hpp"
#include "train/parameter_groups.hpp"
#include "train/setup.hpp"

namespace headroom {

Exit check_experiment(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  const RunData data = prepare_data(experiment, plugin_dirs);
  const Setup setup(data, start_id(experiment.init));
  const std::string started = initialise_from(experiment.init, *setup.model);
  nlohmann::json fields = nlohmann::json::array();
  for (const Field& field : setup.data.source->fields()) {
    fields.push_back(
        {{"name", field.name}, {"dtype", dtype_name(field.dtype)}, {"shape", field.shape}, {"unit", field.unit}});
  }
  int64_t parameters = 0;
  for (const Parameter& parameter : setup.model->parameters()) {
    if (parameter.kind == HR_PARAMETER) parameters += parameter.tensor->numel();
  }
  nlohmann::json found = {{"fields", fields},
                          {"parameters", parameters},
                          {"identity", setup.identity()},
                          {"samples",
                           {{"train", setup.data.splits.train.length()},
                            {"val", setup.data.splits.val.length()},
                            {"test", setup.data.splits.test.length()}}}};
  if (!started.empty()) found["init"] = started;
  if (!experiment.train.groups.empty())
    found["groups"] = group_lines(experiment.train.groups, setup.model->parameters());
  ClassBalance balance = class_balance(setup);
  if (!balance.json.empty()) found["classes"] = std::move(balance.json);
  if (!balance.warnings.empty()) found["warnings"] = balance.warnings;
  std::printf("%s\n", json_text(found, 2).c_str());
  return Exit::ok;
}

}  // namespace headroom
