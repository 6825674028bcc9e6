// The one table of the keys of an experiment file (the options of plugins have tables of their own): type, what a key
// may hold, what it is for, what it changes, when it is idle. From it come checking and its sentences, `headroom
// schema`, docs/experiment_files.md, the written experiment.toml, a run's identity (identity.hpp), what a rung of
// [rescue] may set, and which trials of a sweep share a plan. fields.hpp is its other half: the member of Experiment
// that holds each key.
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
  options,  // a table that somebody else checks: plugin options
  rungs,    // a list of tables of keys
  groups,   // a list of parameter groups
  sweep,    // lists by key
};

// What another value of a key changes of a run.
enum class Changes {
  subject,      // which run it is: the model, the data, the weights it begins with, its name
  mathematics,  // the weights that come out
  length,       // when it ends and which of its weights are best; the steps until then are the same
  cost,         // memory, time and what is written: the same weights, up to rounding
};

struct Effect {
  Changes changes;
  // The entry of the run's identity that holds the key's value, and which element of it; "": the identity is without
  // it.
  std::string_view entry = "";
  int element = 0;
  bool probed = true;  // the probe of a plan measures what it does to memory
  // Of keys that came after identities were on disk: one that has its default has no entry, so that those stay.
  bool left_out_at_default = false;

  constexpr Effect unprobed() const {
    Effect effect = *this;
    effect.probed = false;
    return effect;
  }
};

// When a key is read, checked and recorded but changes nothing: another key makes it meaningless, or this version does
// not act on it yet.
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

// An upper bound from here on only keeps arithmetic from overflowing: sentences leave it out.
inline constexpr double many_to_write = 1e6;

// The table: key_table.cpp. In the order in which experiment.toml is written.
std::span<const Key> known_keys();
const Key* find_key(std::string_view path);                      // NULL: no such key
bool is_section(std::string_view path);                          // "train", "train.optimizer"
std::vector<std::string> names_under(std::string_view section);  // keys and sections directly below; "": the sections

// Of keys, of whole sections and of options ("model.options.width"). What is not known is neither, and probed.
bool is_subject(std::string_view path);  // all of it is Changes::subject
bool is_cost(std::string_view path);     // all of it is Changes::cost
bool is_probed(std::string_view path);   // some of it is

// Why the value that `experiment` holds for this key changes nothing; "" when it changes something.
std::string_view why_idle(const Experiment& experiment, std::string_view path);

// What a key may hold, as in "it must be ...".
std::string allowed(const Key& key);
std::string effect_text(const Key& key);  // "mathematics", as docs/experiment_files.md has it

}  // namespace headroom
