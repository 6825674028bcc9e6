#include "record/json_file.hpp"

#include <fstream>

namespace headroom {

nlohmann::json read_json_file(const std::filesystem::path& file) {
  std::ifstream stream(file);
  nlohmann::json json = stream ? nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
  return json.is_discarded() ? nlohmann::json() : json;
}

}  // namespace headroom
