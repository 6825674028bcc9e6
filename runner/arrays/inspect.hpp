// What a file holds and how it will be read: what `headroom data inspect` shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "arrays/hdf5_survey.hpp"

namespace headroom {

struct InspectedDataset {
  SurveyedObject object;
  std::string lane, why;     // "direct", and why not a faster one; "" both where it cannot be read
  uint64_t chunks = 0;       // of its grid
  uint64_t chunk_bytes = 0;  // of one, decoded
  std::string problem;       // why it cannot be read
  std::vector<std::string> warnings;
};

struct InspectedFile {
  std::filesystem::path path;
  uint64_t size_bytes = 0, user_block_bytes = 0;
  uint64_t groups = 0, attributes = 0;
  bool cut_off = false;
  std::string problem;  // the sentence of a file that cannot be looked at
  std::vector<InspectedDataset> datasets;
};

struct InspectOptions {
  uint64_t chunk_cache_bytes = 32u << 20;  // data.chunk_cache_size
  uint64_t window_rows = 500;
};

// [control] Never throws for what the file holds.
InspectedFile inspect_file(const std::filesystem::path& path, const InspectOptions& options);

}  // namespace headroom
