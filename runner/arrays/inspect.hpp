// What a file holds and how it will be read, for `headroom data inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "arrays/hdf5_survey.hpp"

namespace headroom {

struct InspectedDataset {
  SurveyedObject object;
  std::string lane, why;     // lane_name(), and why not a faster one; both "" where it cannot be read
  uint64_t chunks = 0;       // how many, written or not
  uint64_t chunk_bytes = 0;  // decoded bytes of one
  std::string problem;       // why it cannot be read; "" where it can
  std::vector<std::string> warnings;
};

struct InspectedFile {
  std::filesystem::path path;
  uint64_t size_bytes = 0, user_block_bytes = 0;
  uint64_t groups = 0, attributes = 0;                                             // attributes of groups and datasets
  std::vector<std::pair<std::string, std::vector<std::string>>> group_attributes;  // names, of groups that have any
  bool cut_off = false;
  std::string problem;  // why the file cannot be opened; then there are no datasets
  std::vector<InspectedDataset> datasets;
};

struct InspectOptions {
  uint64_t chunk_cache_bytes = 32u << 20;  // data.chunk_cache_size
  uint64_t window_rows = 500;              // rows of one sample, for warnings about chunks
};

// Throws nothing for what is wrong with the file: that is in the result. [control]
InspectedFile inspect_file(const std::filesystem::path& path, const InspectOptions& options);

}  // namespace headroom
