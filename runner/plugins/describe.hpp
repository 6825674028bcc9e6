// A plugin's tables as JSON: what `headroom plugins show` prints, and what the torch-free front learns of plugins it
// must not load.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plugins/library.hpp"

namespace headroom {

// {"id", "version", "summary", "path", "abi": "1.0", "min_host_minor", "torch_tag" (null: none), "note": bool,
//  "interfaces": {"headroom.model.torch/1": {"options": [...], "capabilities": ["fp64", ...],
//                                            "recompute_kinds": ["attention", ...]},
//                 "headroom.datasource/1": {"options": [...]}, "headroom.synth/1": {"options": [...]},
//                 "headroom.convert/1": {"options": [...]}, "headroom.optimizer/1": {"options": [...]},
//                 "headroom.state/1": {}, "headroom.gc/1": {}}}    only those it has; options as option_table_to_json()
nlohmann::json describe_plugin(const Library& library);

// Of hr_model_torch.capabilities; those of precisions are values of train.precision.
std::vector<std::string> capability_names(uint32_t capabilities);

}  // namespace headroom
