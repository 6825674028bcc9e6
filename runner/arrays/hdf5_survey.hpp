// A list of everything in a file, made without reading a value.
#pragma once

#include <cstdint>
#include <string>
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

// Follows hard links; an object with several names is listed under one. Throws sdk::Error. REQUIRES Hdf5Lock.
Survey survey_file(hid_t file, const std::string& path);

// A type in words: "float64", "float32[16]", "{time float64, emg float32[16]}". REQUIRES Hdf5Lock.
std::string type_text(hid_t type);

}  // namespace headroom
