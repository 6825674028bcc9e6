// The exported constant and the ELF note, written by one macro at namespace scope of one source file:
//
//   HEADROOM_PLUGIN(.id = "linear", .version = "1.0", .summary = "Linear regression",
//                   .interfaces = {sdk::model<Linear>()})
//
// Everything it emits is constant-initialised: nothing of the plugin runs before the host has looked at its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headroom/abi.h"
#include "headroom/sdk/options.hpp"

namespace headroom::sdk {

// What a C++ class gives to the plugin's interface list; made by model<T>() and datasource<T>().
struct Interface {
  const void* (*find)(std::string_view id) = nullptr;  // NULL when it has no such interface
  uint64_t (*trim_model)(hr_model*, int32_t) HR_NOEXCEPT = nullptr;
  uint64_t (*trim_source)(hr_source*, int32_t) HR_NOEXCEPT = nullptr;
  const char* torch_tag = nullptr;
};

struct Plugin {
  const char* id = nullptr;       // what experiment files call it: [a-z][a-z0-9_]*, at most 43 characters
  const char* version = nullptr;  // the plugin's own
  const char* summary = nullptr;  // one line
  Interface interfaces[4] = {};
  uint16_t min_host_minor = 0;  // raise only for what the plugin cannot do without
  uint32_t flags = 0;           // HR_PLUGIN_CUDA where it links LibTorch's CUDA libraries
  hr_status (*init)(const hr_host*, hr_error*) HR_NOEXCEPT = nullptr;

  constexpr const char* torch_tag() const {
    for (const Interface& interface : interfaces) {
      if (interface.torch_tag != nullptr) return interface.torch_tag;
    }
    return nullptr;
  }
  constexpr uint32_t all_flags() const { return flags | (torch_tag() != nullptr ? HR_PLUGIN_TORCH : 0u); }
};

// One whole ELF note, as readelf -n expects it.
struct NoteSection {
  uint32_t name_size = sizeof HR_NOTE_NAME, descriptor_size = sizeof(hr_note), type = HR_NOTE_TYPE;
  char name[12] = HR_NOTE_NAME;
  hr_note note = {};
};
static_assert(offsetof(NoteSection, note) == 24 && sizeof(NoteSection) == 24 + sizeof(hr_note), "a note has no holes");

consteval void copy_text(char* to, std::size_t room, const char* from) {
  for (std::size_t i = 0; from != nullptr && from[i] != '\0'; ++i) {
    if (i + 1 >= room) throw "the id or torch tag is too long for the ELF note";
    to[i] = from[i];
  }
}

consteval NoteSection make_note(const Plugin& plugin) {
  if (plugin.id == nullptr || plugin.version == nullptr || plugin.summary == nullptr)
    throw ".id, .version and .summary are required";
  NoteSection section;
  section.note = {
      HR_MAGIC, HR_ABI_MAJOR, HR_ABI_MINOR, sizeof(hr_note), plugin.all_flags(), plugin.min_host_minor, 0, {}, {}};
  copy_text(section.note.id, sizeof section.note.id, plugin.id);
  copy_text(section.note.torch_tag, sizeof section.note.torch_tag, plugin.torch_tag());
  return section;
}

// One table for what the plugin's classes can trim.
template <const Plugin& plugin>
const hr_gc* gc_table() noexcept {
  static const hr_gc table = [] {
    hr_gc gc{sizeof(hr_gc), 0, nullptr, nullptr};
    for (const Interface& interface : plugin.interfaces) {
      if (interface.trim_model != nullptr) gc.trim_model = interface.trim_model;
      if (interface.trim_source != nullptr) gc.trim_source = interface.trim_source;
    }
    return gc;
  }();
  return table.trim_model != nullptr || table.trim_source != nullptr ? &table : nullptr;
}

template <const Plugin& plugin>
const void* get_interface(const char* id) noexcept {
  try {
    if (std::string_view(id) == HR_GC) return gc_table<plugin>();
    for (const Interface& interface : plugin.interfaces) {
      const void* table = interface.find != nullptr ? interface.find(id) : nullptr;
      if (table != nullptr) return table;
    }
  } catch (...) {  // building an option table: the host reports the interface as missing
  }
  return nullptr;
}

// The option table of T::options(), made once and kept for ever; empty where T has none.
template <class T>
const hr_options* option_table() {
  static const OptionStorage* storage = [] {
    if constexpr (requires { T::options(); }) {
      return new OptionStorage(T::options());
    } else {
      return new OptionStorage({});
    }
  }();
  return storage->table();
}

}  // namespace headroom::sdk

#define HEADROOM_PLUGIN(...)                                                                                          \
  namespace headroom_plugin_detail {                                                                                  \
  static constexpr ::headroom::sdk::Plugin description{__VA_ARGS__};                                                  \
  __attribute__((section(".note.headroom"), used, aligned(4))) static constexpr ::headroom::sdk::NoteSection note =   \
      ::headroom::sdk::make_note(description);                                                                        \
  }                                                                                                                   \
  extern "C" {                                                                                                        \
  extern __attribute__((visibility("default"))) const hr_plugin headroom_plugin;                                      \
  constinit const hr_plugin headroom_plugin = {HR_MAGIC,                                                              \
                                               HR_ABI_MAJOR,                                                          \
                                               HR_ABI_MINOR,                                                          \
                                               sizeof(hr_plugin),                                                     \
                                               headroom_plugin_detail::description.all_flags(),                       \
                                               headroom_plugin_detail::description.id,                                \
                                               headroom_plugin_detail::description.version,                           \
                                               headroom_plugin_detail::description.summary,                           \
                                               headroom_plugin_detail::description.torch_tag(),                       \
                                               headroom_plugin_detail::description.min_host_minor,                    \
                                               0,                                                                     \
                                               0,                                                                     \
                                               headroom_plugin_detail::description.init,                              \
                                               &::headroom::sdk::get_interface<headroom_plugin_detail::description>}; \
  }                                                                                                                   \
  static_assert(true, "takes the macro's semicolon")
