// Converts between TOML nodes and members of Experiment, for every key type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/experiment.hpp"
#include "config/keys.hpp"

namespace headroom {

using StringsByName = std::vector<std::pair<std::string, std::string>>;

// Assigns the value of `node` to `out`. Returns false where `key` does not allow it; `out` is then undefined. Tables
// are moved out of `node`.
bool read_value(const Key& key, toml::node& node, bool& out);
bool read_value(const Key& key, toml::node& node, int& out);
bool read_value(const Key& key, toml::node& node, int64_t& out);
bool read_value(const Key& key, toml::node& node, uint64_t& out);
bool read_value(const Key& key, toml::node& node, double& out);
bool read_value(const Key& key, toml::node& node, std::string& out);
bool read_value(const Key& key, toml::node& node, std::filesystem::path& out);
bool read_value(const Key& key, toml::node& node, std::vector<std::string>& out);
bool read_value(const Key& key, toml::node& node, StringsByName& out);
bool read_value(const Key& key, toml::node& node, SchedulePoints& out);
bool read_value(const Key& key, toml::node& node, std::optional<int64_t>& out);
bool read_value(const Key& key, toml::node& node, toml::table& out);
bool read_value(const Key& key, toml::node& node, std::optional<toml::table>& out);
bool read_value(const Key& key, toml::node& node, std::vector<RescueRung>& out);
bool read_value(const Key& key, toml::node& node, std::vector<ParameterGroup>& out);
bool read_value(const Key& key, toml::node& node, std::tuple<double&, double&> out);

// Refuses a value that read_value() returned false for: "`name` is ...; it must be ...".
[[noreturn]] void refuse_value(const Key& key, const std::string& name, const toml::node& node);

// The value as a TOML literal that read_value() reads back; "" for an absent one.
std::string value_literal(const Key& key, bool value);
std::string value_literal(const Key& key, int value);
std::string value_literal(const Key& key, int64_t value);
std::string value_literal(const Key& key, uint64_t value);
std::string value_literal(const Key& key, double value);
std::string value_literal(const Key& key, const std::string& value);
std::string value_literal(const Key& key, const std::filesystem::path& value);
std::string value_literal(const Key& key, const std::vector<std::string>& value);
std::string value_literal(const Key& key, const StringsByName& value);
std::string value_literal(const Key& key, const SchedulePoints& value);
std::string value_literal(const Key& key, const std::optional<int64_t>& value);
std::string value_literal(const Key& key, const toml::table& value);
std::string value_literal(const Key& key, const std::optional<toml::table>& value);
std::string value_literal(const Key& key, const std::vector<RescueRung>& value);
std::string value_literal(const Key& key, const std::vector<ParameterGroup>& value);
std::string value_literal(const Key& key, std::tuple<const double&, const double&> value);

}  // namespace headroom
