// What a file holds, made without reading a value, and how it will be read, for `headroom data inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "arrays/hdf5.hpp"

namespace headroom {

struct StoredFilter {
  int32_t id = 0;
  std::string name;
  bool available = false;  // libhdf5 can undo it on this machine
};

struct SurveyedObject {
  std::string name;  // "/observations/qpos"
  bool is_group = false;
  std::vector<std::string> attributes;  // their names, at most 64
  std::string problem;                  // a sentence where libhdf5 cannot open it; then nothing below is set
  // Of a dataset:
  std::vector<uint64_t> shape, chunk;
  std::string type;    // "float64", "{time float64, emg float32[16]}"
  std::string layout;  // "contiguous", "chunked", "compact", "virtual", "external"
  std::vector<StoredFilter> filters;
  uint64_t element_bytes = 0;
  uint64_t stored_bytes = 0, raw_bytes = 0;  // on disk; of all values, decoded
  bool references = false;                   // its values are HDF5 references to other objects
};

struct Survey {
  std::vector<SurveyedObject> objects;  // in the order of their names; "/" first
  uint64_t user_block_bytes = 0;
  bool cut_off = false;  // the list ends at 100,000 objects; there are more
};

// Lists everything in a file (hdf5_survey.cpp). Follows hard links; an object with several names is listed under one.
// Throws sdk::Error. REQUIRES Hdf5Lock.
Survey survey_file(hid_t file, const std::string& path);

// A type in words: "float64", "float32[16]", "{time float64, emg float32[16]}". REQUIRES Hdf5Lock.
std::string type_text(hid_t type);

// A dataset, and how it will be read.
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
