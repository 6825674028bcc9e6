// Fields as JSON, as a checkpoint and an exported file describe the inputs of their model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "plugins/source.hpp"

namespace headroom {

nlohmann::json fields_to_json(const std::vector<Field>& fields);

// fields_from_json(fields_to_json(fields)) is equal. Error(bad_input) where it is not a list of fields.
std::vector<Field> fields_from_json(const nlohmann::json& json);

}  // namespace headroom
