// JSON that another process wrote, or somebody's hand.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace headroom {

// null when it is missing or no JSON.
nlohmann::json read_json_file(const std::filesystem::path& file);

}  // namespace headroom
