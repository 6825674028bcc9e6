// [sweep]: the values to try for each key, "train.batch_size" = [8, 16] or { from = 8, to = 64, step = 8 }, and how
// they are combined. Each value must be one that the key allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

#include "config/constraint.hpp"
#include "config/options.hpp"

namespace headroom {

// { from, to }: with step or count it lists values; without either, values are drawn from it.
struct SweptRange {
  double from = 0, to = 0;
  double step = 0;        // 0: not given; a factor with log
  int64_t count = 0;      // 0: not given
  bool log = false;       // equal ratios instead of equal differences
  bool integers = false;  // of an integer key

  bool is_listed() const { return step > 0 || count > 0; }
  std::vector<std::string> values() const;  // as TOML. REQUIRES: is_listed()
  std::string at(double share) const;       // as TOML; share 0 gives from, 1 gives to
};

struct SweptKey {
  std::string path;                 // "train.batch_size"
  std::vector<std::string> values;  // as TOML: the list, or what the range lists
  std::optional<SweptRange> range;
};

struct SweepSection {
  std::string method = "grid";   // grid | random
  int64_t trials = 0;            // of random
  uint64_t seed = 0;             // of random
  std::string strategy = "all";  // all: each trial runs to its end | asha: successive halving
  int64_t min_epochs = 1;        // of asha: before trials are first compared
  int64_t reduction = 3;         // of asha: one of this many trials is promoted
  std::optional<Constraint> constraint;
  std::vector<SweptKey> keys;  // in the order of the file
};

// Error(bad_input) at unknown keys, at values that their keys do not allow, and at a constraint that does not parse.
// check_swept_options() checks options of plugins.
SweepSection read_sweep(toml::table& sweep);

// Checks the keys below `where` ("model.options") against the plugin's own table. `owner` as in check_options().
void check_swept_options(const OptionTable& spec, const toml::table& sweep, std::string_view where,
                         std::string_view owner);

// One value for one key: the element of its list, or a literal.
struct SweptChoice {
  std::string path;
  std::optional<size_t> element;  // nullopt: `literal`, a number of a range
  std::string literal;
};

// Applies one trial to the document and removes [sweep] from it. Elements of lists are moved, so that relative paths
// stay relative to the file that they were written in.
void lay_trial(toml::table& document, const std::vector<SweptChoice>& choices);

}  // namespace headroom
