// Option tables in the runner's own types: what a plugin declares (OptionSpec) and what an experiment file sets
// (OptionValue). Both are plain values that can be stored as JSON, so that the torch-free program can check options of
// a plugin that it must not load.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <variant>
#include <vector>

namespace headroom {

// The numbers are hr_type's (headroom/abi.h).
enum class OptionType : int32_t {
  boolean = 1,
  i64 = 2,
  f64 = 3,
  string = 4,
  bytes = 5,
  path = 6,
  table = 7,
  open_table = 8
};

struct OptionSpec {
  std::string name;
  OptionType type = OptionType::string;
  bool is_list = false;
  bool required = false;
  std::optional<std::string> default_value, min, max;  // TOML literals
  std::vector<std::string> choices;
  std::string help;
  std::vector<OptionSpec> table;  // of OptionType::table
};
using OptionTable = std::vector<OptionSpec>;

struct OptionValue;
using OptionValues = std::vector<OptionValue>;  // in the order of the OptionTable

// Absent (monostate), a scalar, a list of scalars, a sub-table, or a list of sub-tables. BYTES are int64_t, PATHs are
// absolute strings, tables with any keys are JSON (open_table.hpp).
struct OptionValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
               std::vector<double>, std::vector<std::string>, OptionValues, std::vector<OptionValues>>
      value;
  bool present() const { return value.index() != 0; }
};

// Checks `table` (NULL: empty) against `spec` and fills in defaults. `where`: the table's key ("model.options").
// `owner`: whose table it is ("model plugin 'tds_lstm'"). Throws Error(bad_input) with file, line, column, key, the
// nearest known key and what is allowed.
OptionValues check_options(const OptionTable& spec, const toml::table* table, std::string_view where,
                           std::string_view owner);

// Checks one value of one option as check_options() does; errors call it `key`.
OptionValue check_option(const OptionSpec& option, const toml::node& node, const std::string& key,
                         std::string_view owner);

// The option called `name`. Error(bad_input) at `key`, with the nearest name, when there is none.
const OptionSpec& find_option(const OptionTable& spec, const std::string& name, const toml::key& key,
                              std::string_view where, std::string_view owner);

// The resolved values as TOML, for the run's experiment.toml; and as JSON, for identities.
toml::table options_to_toml(const OptionTable& spec, const OptionValues& values);

nlohmann::json option_table_to_json(const OptionTable& spec);
OptionTable option_table_from_json(const nlohmann::json& json);

}  // namespace headroom
