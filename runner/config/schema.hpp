// The JSON Schema (draft 2020-12) of experiment files, for editors: completion, types, ranges, help.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/options.hpp"

namespace headroom {

// Option tables by the id a file gives as model.plugin, data.source or train.optimizer.name. For other plugins the
// options stay unchecked.
nlohmann::json experiment_schema(const std::map<std::string, OptionTable>& models,
                                 const std::map<std::string, OptionTable>& sources,
                                 const std::map<std::string, OptionTable>& optimizers = {});

}  // namespace headroom
