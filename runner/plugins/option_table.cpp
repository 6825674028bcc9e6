// A plugin's option table in the runner's own types.
#include "error.hpp"
#include "plugins/library.hpp"

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
    if (option.type < 0 || option.type >= 2 * HR_LIST || type < HR_BOOL || type > HR_TABLE) {
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

}  // namespace headroom
