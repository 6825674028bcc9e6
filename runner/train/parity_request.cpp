#include <charconv>
#include <cmath>
#include <sstream>

#include "error.hpp"
#include "train/parity.hpp"

namespace headroom {
namespace {

Error refuse(const std::string& sentence) { return Error(Exit::bad_input, "parity", sentence); }

std::pair<std::string, std::string> halves(std::string_view text, std::string_view option, std::string_view form) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    throw refuse(std::string(option) + " " + std::string(text) + ": expected " + std::string(form));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

// "FILE:line:column: ", or what is known of it.
std::string place(const std::filesystem::path& file, const toml::source_region& source) {
  std::ostringstream text;
  text << file.string() << ':' << source.begin.line << ':' << source.begin.column << ": ";
  return text.str();
}

class OptionsReader {
 public:
  explicit OptionsReader(std::filesystem::path file) : file_(std::move(file)) {}

  ParityOptions read() {
    toml::table root;
    try {
      root = toml::parse_file(file_.string());
    } catch (const toml::parse_error& error) {
      throw refuse(place(file_, error.source()) + std::string(error.description()));
    }
    ParityOptions result;
    // Every key is looked at, so that a misspelt one is an error and not a default.
    for (const auto& [key, node] : root) {
      if (key == "model") {
        result.model = model_options(table(node, "model"));
      } else if (key == "fields") {
        for (const auto& [name, facts] : table(node, "fields")) {
          const std::string where = "fields." + std::string(name.str());
          result.fields[std::string(name.str())] = field_facts(table(facts, where), where);
        }
      } else {
        throw unknown(key, "", "[model.options] and [fields.NAME]");
      }
    }
    return result;
  }

 private:
  Error unknown(const toml::key& key, const std::string& where, const std::string& allowed) const {
    return refuse(place(file_, key.source()) + "unknown key '" + where + std::string(key.str()) +
                  "'; allowed: " + allowed);
  }

  const toml::table& table(const toml::node& node, const std::string& where) const {
    if (const toml::table* found = node.as_table()) return *found;
    throw refuse(place(file_, node.source()) + where + " must be a table");
  }

  toml::table model_options(const toml::table& model) const {
    toml::table options;
    for (const auto& [key, node] : model) {
      if (key != "options") throw unknown(key, "model.", "[model.options]");
      options = table(node, "model.options");
    }
    return options;
  }

  ParityOptions::FieldFacts field_facts(const toml::table& given, const std::string& where) const {
    ParityOptions::FieldFacts facts;
    for (const auto& [key, node] : given) {
      if (key == "unit" && node.is_string()) {
        facts.unit = node.value_or(std::string());
      } else if (key == "sample_rate_hz" && node.is_number()) {
        // TOML tells 2000 from 2000.0; either is a rate.
        facts.sample_rate_hz = node.value_or(0.0);
        if (!std::isfinite(facts.sample_rate_hz) || facts.sample_rate_hz < 0.0) {
          throw refuse(place(file_, node.source()) + where + ".sample_rate_hz must be 0 (none) or more");
        }
      } else if (key == "unit" || key == "sample_rate_hz") {
        throw refuse(place(file_, node.source()) + where + "." + std::string(key.str()) + " must be a " +
                     (key == "unit" ? "string" : "number"));
      } else {
        throw unknown(key, where + ".", "unit, sample_rate_hz");
      }
    }
    return facts;
  }

  std::filesystem::path file_;
};

}  // namespace

TensorSelection TensorSelection::parse(std::string_view text) {
  TensorSelection selection;
  const std::size_t colon = text.rfind(':');
  std::error_code ignored;
  // A path may have a colon itself: then the file that is there wins.
  if (colon == std::string_view::npos || std::filesystem::exists(std::filesystem::path(text), ignored)) {
    selection.file = text;
  } else {
    selection.file = text.substr(0, colon);
    // "prefix" takes the prefix away, "prefix=PREFIX" puts another in its place.
    const std::string_view rule = text.substr(colon + 1);
    const std::size_t equals = rule.find('=');
    selection.prefix = rule.substr(0, equals);
    if (equals != std::string_view::npos) selection.rename = rule.substr(equals + 1);
  }
  if (selection.file.empty())
    throw refuse("'" + std::string(text) + "' names no file: expected FILE[:prefix[=PREFIX]]");
  return selection;
}

void ParityRequest::add_field(std::string_view text) {
  auto [name, key] = halves(text, "--field", "NAME=KEY: a field of the model and the batch's key for it");
  if (!fields.emplace(name, key).second) throw refuse("--field names '" + name + "' twice");
}

void ParityRequest::add_transposition(std::string_view text) {
  const std::string form = "FIELD=0,2,1: a field and the order of its stored axes, the batch axis 0 first";
  auto [name, list] = halves(text, "--transpose", form);
  std::vector<int64_t> axes;
  // Runs once more at the end: an empty list, or a comma at its end, leaves out a number, which is an error.
  for (const char *at = list.data(), *end = at + list.size(); at <= end; ++at) {
    int64_t axis = 0;
    const auto [stop, error] = std::from_chars(at, end, axis);
    if (error != std::errc() || (stop != end && *stop != ','))
      throw refuse("--transpose " + std::string(text) + ": expected " + form);
    axes.push_back(axis);
    at = stop;
  }
  if (!transpositions.emplace(name, axes).second) throw refuse("--transpose names '" + name + "' twice");
}

ParityOptions ParityOptions::load(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw refuse("--options " + file.string() + ": there is no such file");
  return OptionsReader(file).read();
}

}  // namespace headroom
