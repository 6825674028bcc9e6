// Every key of an experiment file that is the runner's own (plugins' options are not): its type, what it may hold, what
// it is for. Checking, sentences, `headroom schema` and the written experiment.toml all come from this one table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/sentences.hpp"

namespace headroom {

enum class KeyType {
  boolean,
  integer,
  number,
  choice,        // one of `choices`
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
  strings,    // a list
  recompute,  // "none", "auto" or a list of names
  strings_by_name,
  options,  // a table that somebody else checks: plugin options
  rungs,    // a list of tables of keys
  sweep,    // lists by key
};

struct Key {
  std::string path;  // "train.optimizer.lr"
  KeyType type;
  std::string help;
  Range range = {};
  std::vector<std::string> choices = {};
  bool required = false;

  std::string_view section() const;  // "train.optimizer"
  std::string_view name() const;     // "lr"
};

// In the order in which experiment.toml is written.
std::span<const Key> known_keys();
const Key* find_key(std::string_view path);                      // NULL: no such key
bool is_section(std::string_view path);                          // "train", "train.optimizer"
std::vector<std::string> names_under(std::string_view section);  // keys and sections directly below; "": the sections

// What a key may hold, as in "it must be ...".
std::string allowed(const Key& key);

}  // namespace headroom
