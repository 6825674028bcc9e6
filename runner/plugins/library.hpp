// plugins/: the host's side of the boundary (include/headroom/abi.h). This is its front door. It loads shared
// libraries, explains why one does not match, and wraps their C tables:
//   library.hpp      Library: a loaded plugin and its tables
//   find.hpp         where plugins are found               options.hpp     option tables and values of a plugin
//   source.hpp       Source, Reader: a datasource          recording.hpp   Recording: a recording to predict on
//   made_up.hpp      made-up samples of the fields that a model says it takes
//   torch_model.hpp  Model: a LibTorch model; with model_contract.hpp, its contract, all that needs LibTorch
//   optimizer_plugin.hpp  OptimizerPlugin: an optimizer of a plugin
//   host.hpp         the services that plugins may ask for; folders above register theirs
//   session.hpp      Session: what belongs to one run behind those services
//   call.hpp         call(), check(): how any function of a plugin is called
//   describe.hpp     `headroom plugins show`               field_json.hpp  fields as JSON
//   conformance.hpp  `headroom plugins check`              check_list.hpp  CheckList: checks and their results
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "error.hpp"
#include "headroom/abi.h"
#include "headroom/backward.h"
#include "headroom/capabilities.h"
#include "headroom/classes.h"
#include "headroom/convert.h"
#include "headroom/costs.h"
#include "headroom/inputs.h"
#include "headroom/model_files.h"
#include "headroom/optimizer.h"
#include "headroom/positions.h"
#include "headroom/predict.h"
#include "plugins/find.hpp"
#include "plugins/note.hpp"
#include "plugins/options.hpp"

namespace headroom {

// A loaded plugin. It is never unloaded, because autograd nodes that it made may outlive every object here. Cheap to
// copy.
class Library {
 public:
  // [control] Reads the file's note and refuses a mismatch before any code of the plugin runs. Then loads it, checks
  // its header and calls its init, once. A file that is already loaded gives the same plugin. Error(plugin): what was
  // found, what this host needs, what to do.
  static Library load(const std::filesystem::path& path);

  std::string id() const { return plugin_->id; }
  const hr_plugin& plugin() const { return *plugin_; }
  const hr_host* host() const;  // for calls that belong to no run
  const std::filesystem::path& path() const { return path_; }
  // Identifies the build of the file that was loaded (read_build); changes when its code is rebuilt.
  const std::string& build() const { return build_; }

  // The interface table; NULL if the plugin lacks it. Error(plugin) if the table is shorter than in ABI 1.0, a required
  // function is NULL, or its option table is malformed. Valid forever.
  const hr_datasource* datasource() const;
  const hr_synth* synth() const;
  const hr_convert* convert() const;
  const hr_model_torch* model_torch() const;
  const hr_state* state() const;
  const hr_gc* gc() const;
  const hr_predict* predict() const;  // each side is complete or NULL
  const hr_inputs* inputs() const;
  const hr_classes* classes() const;
  const hr_class_names* class_names() const;
  const hr_positions* positions() const;
  const hr_capabilities* capabilities() const;
  const hr_backward* backward() const;
  const hr_model_files* model_files() const;
  const hr_optimizer* optimizer() const;

  // Options of the source that are no part of a run's identity; empty: none says so. Error(plugin) where it has no such
  // option.
  std::vector<std::string> cost_options() const;

  // The names that memory.recompute may have for a model, the one with most bytes saved per second first; empty: none.
  // Error(plugin) if they are empty, reserved, repeated or more than 64.
  std::vector<std::string> recompute_kinds() const;

 private:
  const hr_plugin* plugin_ = nullptr;
  std::filesystem::path path_;
  std::string build_;
};

// All interfaces that this host asks plugins for.
struct KnownInterface {
  const char* id;                         // "headroom.state/1"
  bool (*is_offered)(const Library& by);  // Error(plugin) as the members of Library
};
std::span<const KnownInterface> known_interfaces();

}  // namespace headroom
