// The engine of `headroom parity`: one step of a model plugin on weights and a batch that another implementation wrote,
// and everything that came of it in one file, to be compared tensor by tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace headroom {

// Part of a safetensors file: the keys that start with `prefix`, known by `rename` + what follows the prefix.
struct TensorSelection {
  std::filesystem::path file;
  std::string prefix, rename;

  // "FILE[:prefix[=PREFIX]]"; the whole text when a file of that name exists. Error(bad_input).
  static TensorSelection parse(std::string_view text);
};

struct ParityRequest {
  std::string model;  // id or path of the plugin
  std::vector<std::filesystem::path> plugin_dirs;
  std::filesystem::path
      options;  // TOML: [model.options], [fields.NAME] with unit and sample_rate_hz; empty: none of them
  std::vector<TensorSelection> weights;
  TensorSelection batch;
  std::map<std::string, std::string> fields;                   // field -> key of the batch, where they differ
  std::map<std::string, std::vector<int64_t>> transpositions;  // field -> order of its stored axes
  bool train = false, gradients = false, fp64 = false;
  std::filesystem::path out;

  // "NAME=KEY" and "FIELD=0,2,1", as --field and --transpose take them. Error(bad_input), also for the same field
  // twice.
  void add_field(std::string_view text);
  void add_transposition(std::string_view text);
};

// What ParityRequest::options says.
struct ParityOptions {
  struct FieldFacts {
    std::string unit;
    double sample_rate_hz = 0.0;
  };
  toml::table model;  // [model.options]
  std::map<std::string, FieldFacts> fields;

  // Error(bad_input) with file:line:column for whatever else the file holds.
  static ParityOptions load(const std::filesystem::path& file);
};

struct ParityResult {
  double loss_sum = 0.0, weight = 0.0;
  std::size_t tensors = 0;  // written
};

// Writes loss_sum, weight, every output by its name, metric/<name>, and with `gradients` grad/<parameter> of loss_sum /
// weight. Error(bad_input) lists everything that is missing, unknown or of the wrong shape. Derived tensors are the
// model's own: a stored one is passed over, as are keys of the batch that no field can come from. [control], then
// [compute] on the same thread.
ParityResult run_parity(const ParityRequest& request);

}  // namespace headroom
