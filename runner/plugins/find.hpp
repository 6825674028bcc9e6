// Where plugins are found.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace headroom {

// The folders that are searched, in this order: `plugin_dirs` (--plugin-dir), $HEADROOM_PLUGIN_PATH,
// <executable>/../lib/headroom.
std::vector<std::filesystem::path> plugin_folders(std::span<const std::filesystem::path> plugin_dirs);

// The library of `name`: an id, or a path (it contains '/' or ends in .so). Error(plugin) lists the folders searched
// and the plugins found there.
std::filesystem::path find_plugin(const std::string& name, std::span<const std::filesystem::path> plugin_dirs);
// Every library in these folders, each file once, in order.
std::vector<std::filesystem::path> list_plugins(std::span<const std::filesystem::path> plugin_dirs);

}  // namespace headroom
