// What a file holds, told by libhdf5 without reading a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"

namespace headroom {

struct StoredFilter {
  int32_t id = 0;
  std::string name;
  bool available = false;  // libhdf5 can undo it here
};

struct SurveyedObject {
  std::string name;  // "/observations/qpos"
  bool is_group = false;
  uint64_t attributes = 0;
  std::string problem;  // a sentence, where libhdf5 cannot say what follows
  // of a dataset:
  std::vector<uint64_t> shape, chunk;
  std::string type;    // "float64", "{time float64, emg float32[16]}"
  std::string layout;  // "contiguous", "chunked", "compact", "virtual", "external"
  std::vector<StoredFilter> filters;
  uint64_t element_bytes = 0, stored_bytes = 0, raw_bytes = 0;
  bool references = false;  // its values point at other objects
};

struct Survey {
  std::vector<SurveyedObject> objects;  // in the order of their names; "/" first
  uint64_t user_block_bytes = 0;
  bool cut_off = false;  // there are more than 100,000
};

// Each object under one name, through hard links. Under Hdf5Lock. Throws sdk::Error.
Survey survey_file(hid_t file, const std::string& path);

// "float64", "float32[16]", "{time float64, emg float32[16]}"
std::string type_text(hid_t type);

}  // namespace headroom
