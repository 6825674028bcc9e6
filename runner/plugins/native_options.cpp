// Checked option values in their C form.
#include <deque>

#include "error.hpp"
#include "plugins/library.hpp"

namespace headroom {

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
