// A few samples of the validation split with the model's predictions and the targets, as series or pictures, for the
// run's page: after the first evaluation and after the last.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "metrics/output_pairs.hpp"

namespace headroom {

// Keeps only what a page shows: at most 240 points of 4 channels for each series, and 192 pixels of a picture's width.
class Examples {
 public:
  // `outputs`, `fields`: all of the model's. `length`: of the split. Continues the file of a resumed run.
  Examples(const std::filesystem::path& run, std::vector<OutputPair> pairs, std::vector<OutputInfo> outputs,
           std::span<const Field> fields, uint64_t length);

  // Whether any of the `count` samples from `first` of the split is to be shown.
  bool wants(uint64_t first, uint64_t count) const;
  // Takes the chosen samples of a micro-batch that begins with sample `first`. `fields` and `outputs`: all of the
  // model's.
  void take(uint64_t first, std::span<const at::Tensor> fields, std::span<const at::Tensor> outputs);
  // Returns what was taken since the last write, for another process of the run, which adds it to its own.
  nlohmann::json taken() const;
  void add_taken(const nlohmann::json& taken);
  // In place of write(), where another process writes it: the next evaluation takes its own.
  void forget_taken() { taken_.clear(); }
  // Writes what was taken since the last write, as the evaluation after `step`. Error(cannot_write).
  void write(int64_t step, int64_t epoch);

 private:
  std::filesystem::path file_;
  std::vector<OutputPair> pairs_;
  std::vector<OutputInfo> outputs_;
  std::vector<std::string> fields_;
  std::vector<uint64_t> chosen_;  // samples, rising
  std::map<uint64_t, nlohmann::json> taken_;
  nlohmann::json first_;  // evaluation
};

}  // namespace headroom
