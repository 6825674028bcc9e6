// The one table of the keys of an experiment file: type, allowed values, purpose, what the key changes, when it is
// idle. (Options of plugins have their own tables.) Everything about keys derives from it: checking and its errors,
// `headroom schema`, docs/experiment_files.md, the written experiment.toml, a run's identity (identity.hpp), what a
// rung of [rescue] may set, and which trials of a sweep share a plan. fields.hpp is its other half: the member of
// Experiment that holds each key.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/sentences.hpp"

namespace headroom {

struct Experiment;

enum class KeyType {
  boolean,
  integer,
  number,
  choice,        // one of `choices`
  optimizer,     // one of `choices`, or the id or the path of a plugin
  run_name,      // names a folder
  plugin,        // id of a plugin, or its path
  metric,        // "val/loss"
  device,        // "auto", "cpu", "cuda", "cuda:1"
  auto_integer,  // "auto" or an integer
  gc_points,     // "epoch", "pressure" or a number of steps
  limit,         // "auto", "off", "80%" or bytes
  bytes,
  duration,  // stored in seconds
  path,
  command,    // for the shell
  betas,      // two numbers
  points,     // a list of [epoch, factor]
  strings,    // a list
  recompute,  // "none", "auto" or a list of names
  strings_by_name,
  options,  // a table checked elsewhere: plugin options
  rungs,    // a list of tables of keys
  groups,   // a list of parameter groups
  sweep,    // lists by key
};

// What of a run changes with the value of a key.
enum class Changes {
  subject,      // which run it is: the model, the data, the weights it begins with, its name
  mathematics,  // the trained weights
  length,       // when it ends and which checkpoint is best; the steps until then stay the same
  cost,         // memory, time and output; the weights stay the same, up to rounding
};

struct Effect {
  Changes changes;
  // The entry of the run's identity that holds the key's value, and the element of it; "": the identity does not
  // contain the key.
  std::string_view entry = "";
  int element = 0;
  bool probed = true;  // a plan's probe measures its effect on memory
  // For keys added after identities were stored on disk: the default has no entry, so that stored identities stay
  // valid.
  bool left_out_at_default = false;

  constexpr Effect unprobed() const {
    Effect effect = *this;
    effect.probed = false;
    return effect;
  }
};

// When a key is read, checked and recorded, but changes nothing: another key makes it meaningless, or this version does
// not support it yet.
struct Idle {
  bool (*applies)(const Experiment& experiment) = nullptr;  // NULL: never
  std::string_view why = "";
};

struct Key {
  std::string path;  // "train.optimizer.lr"
  KeyType type;
  Effect effect;
  std::string help;
  Range range = {};
  std::vector<std::string> choices = {};
  Idle idle = {};
  bool required = false;

  std::string_view section() const;  // "train.optimizer"
  std::string_view name() const;     // "lr"
};

// An upper bound of at least this much only prevents overflow; errors do not mention it.
inline constexpr double many_to_write = 1e6;

// The table (key_table.cpp), in the order in which experiment.toml is written.
std::span<const Key> known_keys();
const Key* find_key(std::string_view path);                      // NULL: no such key
bool is_section(std::string_view path);                          // "train", "train.optimizer"
std::vector<std::string> names_under(std::string_view section);  // keys and sections directly below; "": the sections

// For keys, whole sections and options ("model.options.width"). An unknown path is neither subject nor cost, and is
// probed.
bool is_subject(std::string_view path);  // all of it is Changes::subject
bool is_cost(std::string_view path);     // all of it is Changes::cost
bool is_probed(std::string_view path);   // some of it is

// [any] Whether `text` may be a plugin's id: [a-z][a-z0-9_]*, as abi.h asks.
bool is_plugin_id(std::string_view text);

// Why the value that `experiment` holds for this key changes nothing; "" when it changes something.
std::string_view why_idle(const Experiment& experiment, std::string_view path);

// What a key may hold, as in "it must be ...".
std::string allowed(const Key& key);
std::string effect_text(const Key& key);  // "mathematics", as docs/experiment_files.md has it

}  // namespace headroom
