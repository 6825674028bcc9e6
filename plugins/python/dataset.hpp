// data.source = "python": a map-style Dataset of a user's file, unchanged, as a source of the runner. It is read in
// worker processes (dataset_workers.hpp): the trainer's own Python, if it has one, takes no part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataset_workers.hpp"
#include "headroom/datasource.hpp"

namespace headroom::python {

class PythonSource {
 public:
  static sdk::OptionList options();
  static std::vector<std::string> cost_options() { return {"read_timeout_s"}; }
  PythonSource(const sdk::Host& host, const sdk::Options& options);

  std::vector<sdk::Field> fields() const { return fields_; }
  std::vector<std::string> splits() const { return splits_; }
  uint64_t length(uint32_t split) const { return workers_->length(split); }
  std::vector<std::filesystem::path> files() const { return files_; }
  bool augments() const { return augments_; }
  void read(const sdk::ReadRequest& request) const;

 private:
  void normalize(const std::vector<sdk::Options>& wanted);

  bool augments_;
  std::vector<std::string> splits_;
  std::vector<std::filesystem::path> files_;
  std::unique_ptr<DatasetWorkers> workers_;
  std::vector<sdk::Field> fields_;
};

}  // namespace headroom::python
