// An optimizer plugin (headroom.optimizer/1). train/ makes the buffers that it works on.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/library.hpp"
#include "plugins/session.hpp"

namespace headroom {

// The library that train.optimizer.name names; nullopt: a built-in optimizer. Error(bad_input) at the name's position
// where it is neither built in nor a plugin's.
std::optional<std::filesystem::path> find_optimizer(const OptimizerSection& section,
                                                    std::span<const std::filesystem::path> plugin_dirs);

// All members [control] except step(), which is [compute].
class OptimizerPlugin {
 public:
  // Checks [train.optimizer_options] and makes the optimizer. Error(bad_input) for options that are not valid;
  // Error(plugin).
  OptimizerPlugin(Library library, const TrainSection& train, Session& session);
  OptimizerPlugin(OptimizerPlugin&&) = delete;
  ~OptimizerPlugin();

  std::string id() const { return library_.id(); }
  const Library& library() const { return library_; }
  const OptionTable& table() const { return table_; }
  const OptionValues& options() const { return options_; }  // in the order of the table, defaults filled in
  // Error(bad_input) where it does not support `precision`, a value of train.precision.
  void require_precision(const std::string& precision) const;

  struct Buffer {
    std::string name;
    uint64_t elements = 0;
  };
  struct Needs {
    std::vector<Buffer> state;
    uint64_t scratch = 0;  // elements
  };
  // Error(plugin) where names or sizes are not sound.
  Needs needs(const hr_trained& parameter) const;

  // Error(plugin): the values may then be half updated.
  void step(int64_t step, std::span<const hr_update> updates) const;

 private:
  Library library_;
  const hr_optimizer* api_;
  OptionTable table_;
  OptionValues options_;
  hr_rule* rule_ = nullptr;
};

}  // namespace headroom
