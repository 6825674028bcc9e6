// Does a plugin suit this host? Asked twice: of the note in the file, before a line of the plugin runs, and of the
// loaded header.
#pragma once

#include <cstdint>
#include <string>

#include "headroom/abi.h"
#include "plugins/library.hpp"

namespace headroom {

// Smaller is an older ABI than 1.0, which never was; larger than this is damage, not growth.
inline constexpr uint32_t kLargestStruct = 1u << 20;

// Throws Error(plugin): what the plugin needs, what this host offers, what to do.
void require_compatible(const Note& facts, const std::filesystem::path& path);

// The facts of a loaded header. Throws Error(plugin) when its first 16 bytes, its size or its required members are
// wrong.
Note read_header(const hr_plugin* plugin, const std::filesystem::path& path);

// Throws Error(plugin) unless 1.0's `smallest` <= struct_size <= kLargestStruct.
void require_size(uint32_t struct_size, std::size_t smallest, const std::string& what, const std::string& component);

}  // namespace headroom
