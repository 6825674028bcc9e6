// The user's cache folder, for what can be made again: in $XDG_CACHE_HOME, else ~/.cache.
#pragma once

#include <filesystem>
#include <string_view>

namespace headroom {

// <cache>/headroom/<name>; empty when there is no such folder. [any]
std::filesystem::path user_cache(std::string_view name);

// Writes `file` whole or not at all. A failure is ignored. [any]
void keep_in_cache(const std::filesystem::path& file, std::string_view text);

}  // namespace headroom
