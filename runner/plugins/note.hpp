// What a plugin says about itself, and whether that suits this host. Checked twice: in the ELF note of the file, before
// any code of the plugin runs, and in the header once it is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/abi.h"

namespace headroom {

// For another major version only abi_major, abi_minor and flags are known; `id` is then the file's name.
struct Note {
  uint16_t abi_major, abi_minor, min_host_minor;
  uint32_t flags;             // HR_PLUGIN_*
  std::string id, torch_tag;  // torch_tag "": torch-free
};

// [any] nullopt: the file carries no note. Error(plugin) when it is not a whole shared library for this machine, or the
// note is damaged.
std::optional<Note> read_note(const std::filesystem::path& path);

// [any] Identifies the build of a library: a digest of the linker's build id, or of the whole file where there is none.
// Error(plugin) as read_note().
std::string read_build(const std::filesystem::path& path);

// The same facts from a loaded header. Error(plugin) when its first 16 bytes, its size or its required members are
// wrong.
Note read_header(const hr_plugin* plugin, const std::filesystem::path& path);

// Error(plugin) unless major version, min_host_minor and torch tag suit this host: what the plugin needs, what this
// host offers, what to do.
void require_compatible(const Note& facts, const std::filesystem::path& path);

// A struct_size above this is damage, not growth.
inline constexpr uint32_t kLargestStruct = 1u << 20;

// Error(plugin, component) unless smallest <= struct_size <= kLargestStruct. `smallest` is the size in ABI 1.0.
void require_size(uint32_t struct_size, std::size_t smallest, const std::string& what, const std::string& component);

}  // namespace headroom
