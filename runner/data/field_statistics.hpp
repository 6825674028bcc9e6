// What a field is standardised by.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace headroom {

struct FieldStatistics {
  std::string field;
  std::vector<double> mean, std;  // one of each per channel; the std of a constant channel is 1
  uint64_t samples = 0;           // how many were measured
};

// Read back they are equal to the bit. Error(bad_input).
nlohmann::json statistics_to_json(std::span<const FieldStatistics> statistics);
std::vector<FieldStatistics> statistics_from_json(const nlohmann::json& json);

}  // namespace headroom
