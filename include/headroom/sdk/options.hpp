// A plugin's option table in C++, and typed access to the values the host hands over.
//
//   static OptionList options() {
//     return {opt_path("path").required().help("folder of recordings"),
//             opt_i64("window_size").def(500).min(1).help("samples per window"),
//             opt_string("loss").def("mse").choices({"mse", "mae"}).help("what training minimises"),
//             opt_tables("stages", {opt_i64("kernel").required(), opt_i64("stride").def(1)})
//                 .help("one table per stage")};
//   }
//   ... options.i64("window_size"), options.string("loss"), options.tables("stages") ...
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "headroom/sdk/error.hpp"

namespace headroom::sdk {

class Option;
using OptionList = std::vector<Option>;

// One key of a plugin's table. Text given to def, min and max is a TOML literal ("0.5", "[1, 2]"), except that a
// string, path or bytes option takes the bare text ("mse", "64 MiB").
class Option {
 public:
  Option(std::string name, hr_type type, OptionList table = {});

  Option& required() & { return required_ = true, *this; }
  Option&& required() && { return std::move(required()); }
  Option& help(std::string text) & { return help_ = std::move(text), *this; }
  Option&& help(std::string text) && { return std::move(help(std::move(text))); }
  Option& choices(std::vector<std::string> allowed) & { return choices_ = std::move(allowed), *this; }
  Option&& choices(std::vector<std::string> allowed) && { return std::move(choices(std::move(allowed))); }

  template <class Value>
  Option& def(const Value& value) & {
    default_ = plain_text() ? quoted(literal(value)) : literal(value);
    return *this;
  }
  template <class Value>
  Option&& def(const Value& value) && {
    return std::move(def(value));
  }
  template <class Value>
  Option& min(const Value& least) & {
    return min_ = bound(literal(least)), *this;
  }
  template <class Value>
  Option&& min(const Value& least) && {
    return std::move(min(least));
  }
  template <class Value>
  Option& max(const Value& most) & {
    return max_ = bound(literal(most)), *this;
  }
  template <class Value>
  Option&& max(const Value& most) && {
    return std::move(max(most));
  }

 private:
  friend class OptionStorage;
  bool plain_text() const { return type_ == HR_STRING || type_ == HR_PATH || type_ == HR_BYTES; }
  std::string quoted(const std::string& text) const;
  std::string bound(const std::string& text) const { return type_ == HR_BYTES ? quoted(text) : text; }
  static std::string literal(std::string_view text) { return std::string(text); }
  static std::string literal(const char* text) { return text; }
  static std::string literal(const std::string& text) { return text; }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  static std::string literal(Number number);

  std::string name_, help_;
  hr_type type_;
  bool required_ = false;
  std::optional<std::string> default_, min_, max_;
  std::vector<std::string> choices_;
  OptionList table_;
};

inline Option::Option(std::string name, hr_type type, OptionList table)
    : name_(std::move(name)), type_(type), table_(std::move(table)) {}

inline std::string Option::quoted(const std::string& text) const {
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (type_ == HR_BYTES && number) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

template <class Number>
requires std::is_arithmetic_v<Number> std::string Option::literal(Number number) {
  if constexpr (std::is_same_v<Number, bool>) {
    return number ? "true" : "false";
  } else {
    char text[64];
    std::string result(text, std::to_chars(text, text + sizeof text, number).ptr);
    // TOML tells 1.0 from 1.
    if (std::is_floating_point_v<Number> && result.find_first_of(".ein") == std::string::npos) result += ".0";
    return result;
  }
}

inline Option opt_bool(std::string name) { return {std::move(name), HR_BOOL}; }
inline Option opt_i64(std::string name) { return {std::move(name), HR_I64}; }
inline Option opt_f64(std::string name) { return {std::move(name), HR_F64}; }
inline Option opt_string(std::string name) { return {std::move(name), HR_STRING}; }
inline Option opt_bytes(std::string name) { return {std::move(name), HR_BYTES}; }
inline Option opt_path(std::string name) { return {std::move(name), HR_PATH}; }
inline Option opt_table(std::string name, OptionList keys) { return {std::move(name), HR_TABLE, std::move(keys)}; }
// With any keys: what others than the plugin declare.
inline Option opt_open_table(std::string name) { return {std::move(name), HR_OPEN_TABLE}; }
inline Option opt_bools(std::string name) { return {std::move(name), HR_LIST | HR_BOOL}; }
inline Option opt_i64s(std::string name) { return {std::move(name), HR_LIST | HR_I64}; }
inline Option opt_f64s(std::string name) { return {std::move(name), HR_LIST | HR_F64}; }
inline Option opt_strings(std::string name) { return {std::move(name), HR_LIST | HR_STRING}; }
inline Option opt_paths(std::string name) { return {std::move(name), HR_LIST | HR_PATH}; }
inline Option opt_tables(std::string name, OptionList keys) {
  return {std::move(name), HR_LIST | HR_TABLE, std::move(keys)};
}

// The C form of an OptionList; owns everything table() points to.
class OptionStorage {
 public:
  explicit OptionStorage(OptionList list) : list_(std::move(list)) {
    entries_.reserve(list_.size());
    for (const Option& option : list_) entries_.push_back(entry(option));
    table_ = {sizeof(hr_options), sizeof(hr_option), entries_.size(), entries_.data()};
  }
  OptionStorage(const OptionStorage&) = delete;
  OptionStorage& operator=(const OptionStorage&) = delete;
  const hr_options* table() const { return &table_; }

 private:
  static const char* text(const std::optional<std::string>& value) { return value ? value->c_str() : nullptr; }

  hr_option entry(const Option& option) {
    hr_option result{option.name_.c_str(),
                     option.type_,
                     option.required_ ? 1u : 0u,
                     text(option.default_),
                     text(option.min_),
                     text(option.max_),
                     nullptr,
                     option.help_.c_str(),
                     nullptr};
    if (!option.choices_.empty()) {
      auto& names = choices_.emplace_back(std::make_unique<std::vector<const char*>>());
      for (const std::string& choice : option.choices_) names->push_back(choice.c_str());
      names->push_back(nullptr);
      result.choices = names->data();
    }
    if ((option.type_ & ~HR_LIST) == HR_TABLE) {
      result.table = tables_.emplace_back(std::make_unique<OptionStorage>(option.table_))->table();
    }
    return result;
  }

  OptionList list_;
  std::vector<hr_option> entries_;
  std::vector<std::unique_ptr<std::vector<const char*>>> choices_;
  std::vector<std::unique_ptr<OptionStorage>> tables_;
  hr_options table_{};
};

// The values of one table. Borrowed from the host: valid during the call they came with; what the accessors return is a
// copy. Asking for a name the table lacks, for another type, or for a value that is absent is a mistake of the plugin:
// HR_INTERNAL.
class Options {
 public:
  Options(const hr_options* table, const hr_value* values) : table_(table), values_(values) {}

  // Set by the user or by its default.
  bool has(std::string_view name) const { return find(name).present != 0; }

  bool boolean(std::string_view name) const { return get(name, HR_BOOL).as.i64 != 0; }
  int64_t i64(std::string_view name) const { return get(name, HR_I64).as.i64; }
  double f64(std::string_view name) const { return get(name, HR_F64).as.f64; }
  int64_t bytes(std::string_view name) const { return get(name, HR_BYTES).as.i64; }
  std::string string(std::string_view name) const { return get(name, HR_STRING).as.string; }
  std::filesystem::path path(std::string_view name) const { return get(name, HR_PATH).as.string; }
  Options table(std::string_view name) const {
    const std::size_t i = index(name);
    return {table_->options[i].table, get(name, HR_TABLE).as.table};
  }

  std::string open_table(std::string_view name) const { return get(name, HR_OPEN_TABLE).as.string; }  // a JSON object

  std::vector<bool> list_bool(std::string_view name) const {
    const hr_value& value = get(name, HR_LIST | HR_BOOL);
    std::vector<bool> result;
    for (uint64_t i = 0; i < value.count; ++i) result.push_back(value.as.i64s[i] != 0);
    return result;
  }
  std::vector<int64_t> list_i64(std::string_view name) const {
    const hr_value& value = get(name, HR_LIST | HR_I64);
    return {value.as.i64s, value.as.i64s + value.count};
  }
  std::vector<double> list_f64(std::string_view name) const {
    const hr_value& value = get(name, HR_LIST | HR_F64);
    return {value.as.f64s, value.as.f64s + value.count};
  }
  std::vector<std::string> list_string(std::string_view name) const {
    const hr_value& value = get(name, HR_LIST | HR_STRING);
    return {value.as.strings, value.as.strings + value.count};
  }
  std::vector<std::filesystem::path> list_path(std::string_view name) const {
    const hr_value& value = get(name, HR_LIST | HR_PATH);
    return {value.as.strings, value.as.strings + value.count};
  }
  std::vector<Options> tables(std::string_view name) const {
    const std::size_t i = index(name);
    const hr_value& value = get(name, HR_LIST | HR_TABLE);
    std::vector<Options> result;
    for (uint64_t k = 0; k < value.count; ++k)
      result.emplace_back(table_->options[i].table, value.as.tables[k].as.table);
    return result;
  }

 private:
  std::size_t index(std::string_view name) const {
    for (uint64_t i = 0; i < table_->count; ++i) {
      if (name == table_->options[i].name) return i;
    }
    throw Error(HR_INTERNAL,
                "the plugin asks for an option '" + std::string(name) + "' that its own table does not declare");
  }
  const hr_value& find(std::string_view name) const { return values_[index(name)]; }
  const hr_value& get(std::string_view name, hr_type type) const {
    const hr_value& value = find(name);
    if (value.type != type)
      throw Error(HR_INTERNAL, "the plugin reads its option '" + std::string(name) + "' as another type");
    if (value.present == 0) {
      throw Error(HR_INTERNAL,
                  "the plugin reads its option '" + std::string(name) + "', which is not set and has no default");
    }
    return value;
  }

  const hr_options* table_;
  const hr_value* values_;
};

}  // namespace headroom::sdk
