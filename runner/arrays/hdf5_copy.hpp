// Copies an HDF5 file, except for the values of datasets that are to get another layout: those are created empty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"

namespace headroom {

struct NewLayout {
  std::string dataset;
  std::vector<uint64_t> chunk;  // {}: contiguous
  int32_t deflate = -1;         // level; negative: none
  bool shuffle = false;
};

struct CopyRequest {
  std::string to;                  // path of the copy; an existing file is overwritten
  std::vector<NewLayout> layouts;  // datasets to create without values
  // An absolute folder whose files are all copied, each to the same place below another; "": this file alone is.
  std::string tree = {};
};

// Writes the copy: groups, links, attributes, types and all datasets without a new layout are as in `file`, whose path
// is `path`. A user block keeps its size and is left empty. External links lead where they led: their file is named by
// its absolute path where it is not copied along and the copy lies in another folder. Throws sdk::Error, CannotWrite
// where the copy is at fault. REQUIRES Hdf5Lock.
void copy_without_values(hid_t file, const std::string& path, const CopyRequest& request);

}  // namespace headroom
