// `headroom parity`: takes one step of a model plugin with weights and a batch that another implementation wrote, and
// writes all results to one file, to be compared tensor by tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace headroom {

// Part of a safetensors file: the keys that start with `prefix`. In the selection `rename` replaces the prefix.
struct TensorSelection {
  std::filesystem::path file;
  std::string prefix, rename;

  // Parses "FILE[:prefix[=PREFIX]]"; the whole text is the file where a file of that name exists. Error(bad_input).
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

  // Parse "NAME=KEY" and "FIELD=0,2,1", the values of --field and --transpose. Error(bad_input), also where a field is
  // given twice.
  void add_field(std::string_view text);
  void add_transposition(std::string_view text);
};

// The content of the file ParityRequest::options.
struct ParityOptions {
  struct FieldFacts {
    std::string unit;
    double sample_rate_hz = 0.0;
  };
  toml::table model;  // [model.options]
  std::map<std::string, FieldFacts> fields;

  // Error(bad_input) with file:line:column for any other key in the file.
  static ParityOptions load(const std::filesystem::path& file);
};

struct ParityResult {
  double loss_sum = 0.0, weight = 0.0;
  std::size_t tensors = 0;  // written
};

// Writes loss_sum, weight, each output by its name, metric/<name>, and with `gradients` also grad/<parameter> of
// loss_sum / weight. Ignores stored tensors that the model derives itself, and keys of the batch that match no field.
// Error(bad_input) lists everything that is missing, unknown or of the wrong shape. [control], then [compute] on the
// same thread.
ParityResult run_parity(const ParityRequest& request);

}  // namespace headroom
