#include "sweep/trials.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "config/fields.hpp"
#include "config/literals.hpp"
#include "config/values.hpp"

namespace headroom {

namespace {

// A constraint makes few trials of many combinations.
constexpr size_t most_trials = 10'000, most_combinations = 1'000'000;

[[noreturn]] void refuse_sweep(const Experiment& base, const std::string& sentence) {
  throw Error(Exit::bad_input, "sweep", base.file.string() + ": " + sentence);
}

ConstraintValue constraint_value(const std::string& literal_text) {
  const toml::table holder = parse_literal(literal_text);
  // parse_literal() puts the value under this key.
  const toml::node& node = *holder.get("value");
  if (node.is_boolean()) return node.as_boolean()->get();
  if (node.is_number()) return *node.value<double>();
  return node.is_string() ? node.as_string()->get() : literal_text;
}

// What the experiment itself says of the constraint's keys.
class BaseValues {
 public:
  BaseValues(const SweepSection& sweep, const Experiment& base) {
    if (!sweep.constraint) return;
    std::set<std::string> wanted;
    for (const auto& key : sweep.constraint->keys()) wanted.insert(key.path);
    each_field(base, [&](std::string_view path, const auto& field) {
      if (!wanted.contains(std::string(path))) return;
      if (const std::string text = value_literal(*find_key(path), field); !text.empty())
        values_.emplace(path, constraint_value(text));
    });
    // Options of plugins are no fields of Experiment.
    add_options("model.options.", base.model_options, wanted);
    add_options("data.options.", base.data_options, wanted);
    add_options("train.optimizer_options.", base.train.optimizer_options, wanted);
    for (const auto& [path, at] : sweep.constraint->keys()) {
      const bool swept = std::ranges::find(sweep.keys, path, &SweptKey::path) != sweep.keys.end();
      if (!swept && !values_.contains(path))
        refuse(at, "sweep.constraint: " + path + " is neither swept nor set in this experiment");
    }
  }

  const ConstraintValue& at(const std::string& path) const { return values_.at(path); }

 private:
  void add_options(const std::string& prefix, const toml::table& options, const std::set<std::string>& wanted) {
    for (const auto& [key, value] : options) {
      const std::string path = prefix + std::string(key.str());
      if (wanted.contains(path)) values_.emplace(path, constraint_value(literal(value)));
    }
  }

  std::map<std::string, ConstraintValue> values_;
};

// A sequence of our own: the same draws on every machine and with every standard library (splitmix64).
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 53 bits are all that a double holds: from 0 to just below 1.
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Letters, digits and what file systems and shells leave alone.
std::string plain(std::string text) {
  std::erase(text, '"');
  std::ranges::replace_if(
      text, [](char c) { return std::string_view("/\\ \t\n'{}[](),;:&|<>*?$!`~#%").find(c) != std::string_view::npos; },
      '-');
  return text;
}

std::string id_of(size_t number, size_t digits, const Settings& settings) {
  // File systems take 255 bytes.
  constexpr size_t longest = 120;
  std::string id = std::to_string(number);
  id.insert(0, digits > id.size() ? digits - id.size() : 0, '0');
  for (const auto& [key, value] : settings) id += "_" + plain(key.substr(key.rfind('.') + 1) + "=" + value);
  size_t end = std::min(id.size(), longest);
  while (end < id.size() && (static_cast<unsigned char>(id[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return id.substr(0, end);
}

class Lister {
 public:
  Lister(const SweepSection& sweep, const Experiment& base) : sweep_(sweep), base_(base), values_(sweep, base) {}

  std::vector<Trial> list() {
    sweep_.method == "random" ? draw() : combine();
    if (trials_.empty()) {
      refuse_sweep(base_, sweep_.keys.empty() ? "[sweep] names no key; write one, as \"train.batch_size\" = [8, 16]"
                                              : "no combination of [sweep] fulfils sweep.constraint");
    }
    // Numbers of one length, so that names sort in the order of the sweep.
    const size_t digits = std::max<size_t>(3, std::to_string(trials_.size()).size());
    for (size_t i = 0; i < trials_.size(); ++i) trials_[i].id = id_of(i + 1, digits, trials_[i].settings);
    return std::move(trials_);
  }

 private:
  void combine() {
    size_t combinations = sweep_.keys.empty() ? 0 : 1;
    for (const SweptKey& key : sweep_.keys) {
      // Looked at after every factor, so that the product cannot overflow.
      combinations *= key.values.size();
      if (combinations > most_combinations)
        refuse_sweep(base_,
                     "[sweep] has more than a million combinations; list fewer values, or draw some with method = "
                     "\"random\"");
    }
    for (size_t number = 0; number < combinations; ++number) {
      Trial trial;
      // Digits of the number in a mixed base: the last key changes fastest.
      size_t rest = number;
      for (auto key = sweep_.keys.rbegin(); key != sweep_.keys.rend(); ++key) {
        set(trial, *key, rest % key->values.size());
        rest /= key->values.size();
      }
      std::ranges::reverse(trial.settings);
      keep(std::move(trial));
    }
  }

  void draw() {
    constexpr int most_misses = 1000;  // in a row: what is left to draw is little or nothing
    Draws draws(sweep_.seed);
    std::set<Settings> seen;
    for (int misses = 0; misses < most_misses && static_cast<int64_t>(trials_.size()) < sweep_.trials;) {
      Trial trial;
      for (const SweptKey& key : sweep_.keys) {
        if (key.values.empty()) {
          set_number(trial, key.path, key.range->at(draws.share()));
        } else {
          set(trial, key, draws.next() % key.values.size());
        }
      }
      const bool is_new = seen.insert(trial.settings).second;
      misses = is_new && keep(std::move(trial)) ? 0 : misses + 1;
    }
  }

  static void set(Trial& trial, const SweptKey& key, size_t element) {
    // A value of a range is no element of a list in the file, so it is laid as a literal.
    if (key.range) return set_number(trial, key.path, key.values[element]);
    trial.settings.emplace_back(key.path, key.values[element]);
    trial.choices.push_back({key.path, element, ""});
  }
  static void set_number(Trial& trial, const std::string& path, const std::string& literal_text) {
    trial.settings.emplace_back(path, literal_text);
    trial.choices.push_back({path, std::nullopt, literal_text});
  }

  bool keep(Trial trial) {
    const auto value_of = [&](const std::string& path) {
      const auto swept = std::ranges::find(trial.settings, path, &Settings::value_type::first);
      return swept != trial.settings.end() ? constraint_value(swept->second) : values_.at(path);
    };
    if (sweep_.constraint && !sweep_.constraint->holds(value_of)) return false;
    if (trials_.size() == most_trials)
      refuse_sweep(base_,
                   "[sweep] has more than 10000 trials; list fewer values, or draw some with method = \"random\"");
    trials_.push_back(std::move(trial));
    return true;
  }

  const SweepSection& sweep_;
  const Experiment& base_;
  BaseValues values_;
  std::vector<Trial> trials_;
};

}  // namespace

std::vector<Trial> list_trials(const SweepSection& sweep, const Experiment& base) { return Lister(sweep, base).list(); }

}  // namespace headroom
