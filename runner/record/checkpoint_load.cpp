#include <fstream>
#include <iterator>

#include "error.hpp"
#include "record/checkpoint.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

Error refuse(const fs::path& file, const std::string& what) {
  return Error(Exit::bad_input, "checkpoint", file.string() + ": " + what);
}

nlohmann::json parse(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw refuse(file, "cannot be read");
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw refuse(file, "is damaged: not a JSON object");
  return json;
}

}  // namespace

LoadedCheckpoint load_checkpoint(const fs::path& folder) {
  const fs::path file = folder / "checkpoint.json";
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw refuse(folder, "is no checkpoint: there is no such folder");
  if (!fs::is_regular_file(file, error)) throw refuse(folder, "is no checkpoint: it holds no checkpoint.json");
  nlohmann::json json = parse(file);
  auto format = json.find("format");
  if (format == json.end() || !format->is_number_integer()) {
    throw refuse(file, "is no checkpoint's: it holds no format number");
  }
  if (*format != checkpoint_format) {
    throw refuse(file,
                 "has format " + format->dump() + "; this Headroom reads format " + std::to_string(checkpoint_format));
  }
  auto step = json.find("step");
  if (step == json.end() || !step->is_number_unsigned()) throw refuse(file, "is damaged: it holds no step");
  return {SafetensorsFile(folder / "model.safetensors"), SafetensorsFile(folder / "state.safetensors"),
          std::move(json)};
}

}  // namespace headroom
