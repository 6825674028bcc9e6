#include "config/own_experiments.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "program_root.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

fs::path own_folder() {
  const fs::path root = program_root();
  return root.empty() ? root : root / "share" / "headroom" / "experiments";
}

// `path` as seen from the own experiments; empty where it is not one of them.
fs::path path_inside(const fs::path& path) {
  const fs::path own = own_folder();
  if (own.empty() || !path.is_absolute()) return {};
  const fs::path inside = path.lexically_normal().lexically_relative(own);
  return inside.empty() || *inside.begin() == ".." ? fs::path() : inside;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_directory(status);
}

}  // namespace

fs::path experiment_file(const fs::path& path, const fs::path& word) {
  if (is_there(path) || word.is_absolute()) return path;
  fs::path named = (own_folder() / word).lexically_normal();
  named += ".toml";
  return is_there(named) && !path_inside(named).empty() ? named : path;
}

std::vector<std::string> own_experiment_names() {
  std::vector<std::string> names;
  const fs::path own = own_folder();
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(own, problem), end; !problem && entry != end; entry.increment(problem)) {
    fs::path name = entry->path().lexically_relative(own);
    if (name.extension() == ".toml") names.push_back(name.replace_extension().string());
  }
  std::ranges::sort(names, {}, [](const std::string& name) { return std::pair(std::ranges::count(name, '/'), name); });
  return names;
}

fs::path folder_of_paths(const fs::path& file) {
  const fs::path inside = path_inside(file);
  if (inside.empty()) return file.parent_path();
  return fs::current_path() / "experiments" / inside.parent_path();
}

}  // namespace headroom
