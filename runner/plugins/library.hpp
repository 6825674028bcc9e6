// plugins/: the host's side of the boundary. Loads shared libraries, explains every mismatch, and turns their C tables
// into the C++ types the rest of the runner uses: Library here, Source in source.hpp, Model in torch_model.hpp,
// services in host.hpp.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "error.hpp"
#include "headroom/abi.h"
#include "headroom/convert.h"
#include "headroom/predict.h"

namespace headroom {

// A loaded plugin. Never unloaded: autograd nodes and tables it made outlive every call. Cheap to copy.
class Library {
 public:
  // [control] Reads the file's note, explains a mismatch before running a line of it, loads, checks the header, calls
  // init once. A path already loaded gives the same Library. Throws Error(plugin): what was found, what this host
  // needs, what to do.
  static Library load(const std::filesystem::path& path);

  std::string id() const { return plugin_->id; }
  const hr_plugin& plugin() const { return *plugin_; }
  const hr_host* host() const;  // as this plugin sees it where no run is
  const std::filesystem::path& path() const { return path_; }

  // The interface table, NULL when the plugin lacks it. Throws Error(plugin) when it is shorter than revision 1, a
  // required slot is NULL, or its option table is malformed.
  const hr_datasource* datasource() const;
  const hr_synth* synth() const;
  const hr_convert* convert() const;
  const hr_model_torch* model_torch() const;
  const hr_state* state() const;
  const hr_gc* gc() const;
  const hr_predict* predict() const;  // each of its sides whole or NULL

  // What memory.recompute may name of a model, best bargain first. Error(plugin) when they cannot be told apart.
  std::vector<std::string> recompute_kinds() const;

 private:
  const hr_plugin* plugin_ = nullptr;
  std::filesystem::path path_;
};

// What the file itself says of a plugin, without running it: from its ELF note. nullopt: no note.
struct Note {
  uint16_t abi_major, abi_minor, min_host_minor;
  uint32_t flags;
  std::string id, torch_tag;
};
std::optional<Note> read_note(
    const std::filesystem::path& path);  // Error(plugin) when it is not a whole ELF shared library

// The folders searched, in order: `plugin_dirs` (--plugin-dir), $HEADROOM_PLUGIN_PATH, <executable>/../lib/headroom.
std::vector<std::filesystem::path> plugin_folders(std::span<const std::filesystem::path> plugin_dirs);

// `name` is an id or a path (contains '/' or ends in .so). Error(plugin) lists where it looked and what is there.
std::filesystem::path find_plugin(const std::string& name, std::span<const std::filesystem::path> plugin_dirs);
std::vector<std::filesystem::path> list_plugins(std::span<const std::filesystem::path> plugin_dirs);

// Error(plugin, owner) when the table is malformed. The tables of a Library are known to be well-formed.
OptionTable to_option_table(const hr_options* options, std::string_view owner = "plugin");

// The C values of a checked table. Owns everything `values()` points to.
class NativeOptions {
 public:
  NativeOptions(const OptionTable& table, const OptionValues& values);
  NativeOptions(NativeOptions&&) noexcept;
  ~NativeOptions();
  const hr_value* values() const;

 private:
  struct Storage;
  std::unique_ptr<Storage> storage_;
};

// Calls that fail become exceptions: the plugin's sentence with its id in brackets. `what` says what the host was
// doing. INVALID_ARGUMENT -> bad_input; IO -> `io`; DATA_CORRUPT, NOT_FOUND -> data; OUT_OF_MEMORY -> does_not_fit;
// CANCELLED -> resumable; others -> plugin.
void check(hr_status status, const hr_error& error, std::string_view component, std::string_view what,
           Exit io = Exit::data);

}  // namespace headroom
