#include "data/field_statistics.hpp"

#include <nlohmann/json.hpp>

#include "error.hpp"

namespace headroom {

nlohmann::json statistics_to_json(std::span<const FieldStatistics> statistics) {
  // nlohmann::json writes as many digits as a double needs to be read back to the bit.
  nlohmann::json all = nlohmann::json::array();
  for (const FieldStatistics& field : statistics) {
    all.push_back({{"field", field.field}, {"mean", field.mean}, {"std", field.std}, {"samples", field.samples}});
  }
  return all;
}

std::vector<FieldStatistics> statistics_from_json(const nlohmann::json& json) {
  std::vector<FieldStatistics> all;
  try {
    for (const nlohmann::json& field : json) {
      FieldStatistics statistics{field.at("field"), field.at("mean"), field.at("std"), field.at("samples")};
      if (statistics.mean.size() != statistics.std.size())
        throw Error(Exit::bad_input, "data", "the normaliser's mean and std differ in length");
      all.push_back(std::move(statistics));
    }
  } catch (const nlohmann::json::exception& problem) {
    throw Error(Exit::bad_input, "data", std::string("the normaliser cannot be read: ") + problem.what());
  }
  return all;
}

}  // namespace headroom
