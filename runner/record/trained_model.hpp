// A trained model for other programs: its weights, and everything needed to use them without the run and its data. Read
// from a run folder, or from the single safetensors file that `headroom export` writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "record/checkpoint.hpp"

namespace headroom {

struct TrainedModel {
  // Reads a run; `checkpoint` is best, last, or a checkpoint's folder. Error(bad_input).
  static TrainedModel of_run(const std::filesystem::path& run, const std::string& checkpoint);
  // Reads what write() wrote. Error(bad_input) for any other file.
  static TrainedModel of_file(const std::filesystem::path& file);

  // Writes a safetensors file, whole or not at all, with all other members as strings in its metadata.
  // Error(cannot_write).
  void write(const std::filesystem::path& file) const;
  // The metadata: what docs/export.md lists.
  std::map<std::string, std::string> metadata() const;

  const TensorBytes* find(const std::string& name) const;  // NULL: there is none

  std::string plugin;   // the model plugin's id; from a run, what its experiment names, which may be a path
  std::string id;       // "" where the checkpoint lacks it: use `plugin`
  std::string options;  // [model.options], every default filled in, as TOML
  std::string precision;
  uint64_t seed = 0;
  int64_t step = 0;                  // of the checkpoint
  nlohmann::json run;                // the run: id, name, checkpoint, step, identity, content_id
  nlohmann::json fields;             // as in plugins/field_json.hpp; null: an earlier build's checkpoint lacks them
  nlohmann::json outputs;            // name, role and unit of each; null likewise
  nlohmann::json normalizer;         // field, mean and std of each field that is standardised (data/normalizer.hpp)
  std::vector<TensorBytes> weights;  // parameters and buffers; averaged with train.ema
  std::span<const std::byte> state;  // headroom.state/1 bytes; empty: none
  std::string place;                 // its name in sentences

 private:
  std::vector<SafetensorsFile> files_;  // what the spans point into
};

}  // namespace headroom
