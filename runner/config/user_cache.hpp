// What is worth keeping between commands and can be made again: below $XDG_CACHE_HOME, else ~/.cache.
#pragma once

#include <filesystem>
#include <string_view>

namespace headroom {

// <cache>/headroom/<name>; empty when there is no place to keep anything. [any]
std::filesystem::path user_cache(std::string_view name);

// Writes `file` whole or not at all; that it could not is nobody's problem. [any]
void keep_in_cache(const std::filesystem::path& file, std::string_view text);

}  // namespace headroom
