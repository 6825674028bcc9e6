#include "plugins/find.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "error.hpp"
#include "plugins/note.hpp"
#include "program_root.hpp"

namespace headroom {

namespace {

using Path = std::filesystem::path;

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".so"); }

// The libraries of one folder by name; none where the folder is missing or closed.
std::vector<Path> libraries_in(const Path& folder) {
  std::vector<Path> found;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (entry->path().extension() == ".so" && entry->is_regular_file(problem)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

// What the file says it is called; its file name where it says nothing.
std::string id_of(const Path& library) {
  try {
    if (const auto note = read_note(library)) return note->id;
  } catch (const Error&) {  // a broken neighbour must not hide the plugin that was asked for
  }
  return library.stem().string();
}

[[noreturn]] void refuse_missing(const std::string& name, std::span<const Path> plugin_dirs) {
  std::string looked, there;
  for (const Path& folder : plugin_folders(plugin_dirs)) looked += (looked.empty() ? "" : ", ") + folder.string();
  for (const Path& library : list_plugins(plugin_dirs)) there += (there.empty() ? "" : ", ") + id_of(library);
  throw Error(Exit::plugin, "plugin",
              "no plugin '" + name + "' in " + looked + "; there " + (there.empty() ? "is none" : "are: " + there) +
                  ". Add its folder with --plugin-dir or HEADROOM_PLUGIN_PATH, or give the library's path");
}

}  // namespace

std::vector<Path> plugin_folders(std::span<const Path> plugin_dirs) {
  std::vector<Path> folders(plugin_dirs.begin(), plugin_dirs.end());
  if (const char* variable = std::getenv("HEADROOM_PLUGIN_PATH")) {
    std::string_view rest(variable);
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      // Unlike in PATH, an empty part is not the working folder.
      if (!folder.empty()) folders.emplace_back(folder);
      rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    }
  }
  if (const Path root = program_root(); !root.empty()) folders.push_back(root / "lib" / "headroom");
  return folders;
}

std::vector<Path> list_plugins(std::span<const Path> plugin_dirs) {
  std::vector<Path> found;
  std::set<Path> seen;
  for (const Path& folder : plugin_folders(plugin_dirs)) {
    for (const Path& library : libraries_in(folder)) {
      std::error_code problem;
      // Links and repeated folders name one library twice.
      const Path real = std::filesystem::canonical(library, problem);
      if (!problem && seen.insert(real).second) found.push_back(library);
    }
  }
  return found;
}

Path find_plugin(const std::string& name, std::span<const Path> plugin_dirs) {
  if (is_path(name)) {
    std::error_code problem;
    if (std::filesystem::is_regular_file(name, problem)) return name;
    throw Error(Exit::plugin, "plugin", name + " is not there: give the path of a shared library, or a plugin's id");
  }
  for (const Path& folder : plugin_folders(plugin_dirs)) {
    // The usual name first: asking every library of the folder for its id costs a read each.
    const Path usual = folder / (name + ".so");
    std::error_code problem;
    if (std::filesystem::is_regular_file(usual, problem) && id_of(usual) == name) return usual;
    for (const Path& library : libraries_in(folder)) {
      if (id_of(library) == name) return library;
    }
  }
  refuse_missing(name, plugin_dirs);
}

}  // namespace headroom
