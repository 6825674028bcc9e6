// An optimizer that a plugin offers (headroom.optimizer/1). The buffers that it works on are made by train/.
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

// The library that train.optimizer.name names; nullopt: the optimizer is one of ours. Error(bad_input) at the name's
// place where it is neither one of ours nor a plugin's.
std::optional<std::filesystem::path> find_optimizer(const OptimizerSection& section,
                                                    std::span<const std::filesystem::path> plugin_dirs);

// All members [control] except step(), which is [compute].
class OptimizerPlugin {
 public:
  // Checks [train.optimizer_options] and makes the optimizer. Error(bad_input) for options that do not suit,
  // Error(plugin).
  OptimizerPlugin(Library library, const TrainSection& train, Session& session);
  OptimizerPlugin(OptimizerPlugin&&) = delete;
  ~OptimizerPlugin();

  std::string id() const { return library_.id(); }
  const Library& library() const { return library_; }
  const OptionTable& table() const { return table_; }
  const OptionValues& options() const { return options_; }  // in the order of the table, defaults filled in
  // Error(bad_input) where it does not work with train.precision. `precision` as there.
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
