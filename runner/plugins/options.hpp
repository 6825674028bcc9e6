// Options of plugins in two forms: the declared table as the runner's own types, and checked values as C values.
#pragma once

#include <memory>
#include <string_view>

#include "config/options.hpp"
#include "headroom/abi.h"

namespace headroom {

// Converts a declared option table. Error(plugin, owner) if it is malformed; a Library's tables are not.
OptionTable to_option_table(const hr_options* options, std::string_view owner = "plugin");

// Checked option values in the form that a plugin takes: one hr_value for each option. Owns everything that values()
// points to.
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

}  // namespace headroom
