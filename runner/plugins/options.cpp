#include "plugins/options.hpp"

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"

namespace headroom {

namespace {

// A table that contains itself would never end.
constexpr int kDeepest = 8;
constexpr uint64_t kMostOptions = 4096;

std::optional<std::string> text(const char* value) {
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

class Converter {
 public:
  explicit Converter(std::string_view owner) : owner_(owner) {}

  OptionTable table(const hr_options* options, int depth) const {
    if (options == nullptr) return {};
    if (depth > kDeepest) refuse("its tables nest deeper than " + std::to_string(kDeepest));
    if (options->struct_size < sizeof(hr_options) || options->option_size < sizeof(hr_option) ||
        options->option_size > 4096) {
      refuse("its struct_size or option_size is wrong");
    }
    if (options->count > kMostOptions || (options->count > 0 && options->options == nullptr)) {
      refuse("it declares " + std::to_string(options->count) + " options");
    }
    OptionTable result;
    // The plugin's hr_option may be longer than ours: abi.h says to stride by its size.
    const char* bytes = reinterpret_cast<const char*>(options->options);
    for (uint64_t i = 0; i < options->count; ++i) {
      result.push_back(option(*reinterpret_cast<const hr_option*>(bytes + i * options->option_size), i, depth));
      for (uint64_t k = 0; k < i; ++k) {
        if (result[k].name == result[i].name) refuse("it declares '" + result[i].name + "' twice");
      }
    }
    return result;
  }

 private:
  OptionSpec option(const hr_option& option, uint64_t position, int depth) const {
    if (option.name == nullptr || option.name[0] == '\0') refuse("option " + std::to_string(position) + " has no name");
    const hr_type type = option.type & ~HR_LIST;
    if (option.type < 0 || option.type >= 2 * HR_LIST || type < HR_BOOL || type > HR_OPEN_TABLE ||
        option.type == (HR_LIST | HR_OPEN_TABLE)) {
      refuse("option '" + std::string(option.name) + "' has type " + std::to_string(option.type) +
             ", which this headroom does not know");
    }
    OptionSpec spec;
    spec.name = option.name;
    spec.type = static_cast<OptionType>(type);
    spec.is_list = (option.type & HR_LIST) != 0;
    spec.required = option.required != 0;
    spec.default_value = text(option.default_value);
    spec.min = text(option.min);
    spec.max = text(option.max);
    for (const char* const* choice = option.choices; choice != nullptr && *choice != nullptr; ++choice)
      spec.choices.emplace_back(*choice);
    if (option.help != nullptr) spec.help = option.help;
    if (type == HR_TABLE) {
      if (option.table == nullptr) refuse("option '" + spec.name + "' is a table without keys");
      spec.table = table(option.table, depth + 1);
    }
    return spec;
  }

  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Error(Exit::plugin, owner_, "its option table is malformed: " + sentence);
  }

  std::string_view owner_;
};

}  // namespace

OptionTable to_option_table(const hr_options* options, std::string_view owner) {
  return Converter(owner).table(options, 0);
}

// Deques: what was handed out stays where it is.
struct NativeOptions::Storage {
  std::deque<std::vector<hr_value>> values;
  std::deque<std::vector<int64_t>> integers;
  std::deque<std::vector<double>> numbers;
  std::deque<std::string> strings;
  std::deque<std::vector<const char*>> string_lists;
  const hr_value* root = nullptr;

  const char* keep(const std::string& text) { return strings.emplace_back(text).c_str(); }

  void store(hr_value&, std::monostate, const OptionSpec&) {}
  void store(hr_value& to, bool value, const OptionSpec&) { to.as.i64 = value ? 1 : 0; }
  void store(hr_value& to, int64_t value, const OptionSpec&) { to.as.i64 = value; }
  void store(hr_value& to, double value, const OptionSpec&) { to.as.f64 = value; }
  void store(hr_value& to, const std::string& value, const OptionSpec&) { to.as.string = keep(value); }
  // abi.h passes booleans as int64.
  void store(hr_value& to, const std::vector<bool>& list, const OptionSpec&) {
    to.count = list.size();
    to.as.i64s = integers.emplace_back(list.begin(), list.end()).data();
  }
  void store(hr_value& to, const std::vector<int64_t>& list, const OptionSpec&) {
    to.count = list.size();
    to.as.i64s = integers.emplace_back(list).data();
  }
  void store(hr_value& to, const std::vector<double>& list, const OptionSpec&) {
    to.count = list.size();
    to.as.f64s = numbers.emplace_back(list).data();
  }
  void store(hr_value& to, const std::vector<std::string>& list, const OptionSpec&) {
    auto& texts = string_lists.emplace_back();
    for (const std::string& text : list) texts.push_back(keep(text));
    to.count = list.size();
    to.as.strings = texts.data();
  }
  void store(hr_value& to, const OptionValues& table, const OptionSpec& spec) {
    to.count = table.size();
    to.as.table = convert(spec.table, table);
  }
  void store(hr_value& to, const std::vector<OptionValues>& list, const OptionSpec& spec) {
    auto& tables = values.emplace_back();
    for (const OptionValues& table : list) {
      hr_value entry{HR_TABLE, 1, table.size(), {}};
      entry.as.table = convert(spec.table, table);
      tables.push_back(entry);
    }
    to.count = list.size();
    // Only here: the address changes while entries are added.
    to.as.tables = tables.data();
  }

  const hr_value* convert(const OptionTable& table, const OptionValues& given) {
    if (given.size() != table.size()) throw Error(Exit::bug, "plugin", "option values do not match their table");
    // Filled in place: conversion of a sub-table adds to `values`, which moves nothing.
    auto& result = values.emplace_back(table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
      result[i].type = static_cast<hr_type>(table[i].type) | (table[i].is_list ? HR_LIST : 0);
      result[i].present = given[i].present() ? 1 : 0;
      result[i].count = given[i].present() ? 1 : 0;
      std::visit([&](const auto& value) { store(result[i], value, table[i]); }, given[i].value);
    }
    return result.data();
  }
};

NativeOptions::NativeOptions(const OptionTable& table, const OptionValues& values)
    : storage_(std::make_unique<Storage>()) {
  storage_->root = storage_->convert(table, values);
}
NativeOptions::NativeOptions(NativeOptions&&) noexcept = default;
NativeOptions::~NativeOptions() = default;
const hr_value* NativeOptions::values() const { return storage_->root; }

}  // namespace headroom
