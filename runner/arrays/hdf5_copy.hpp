// A file's copy in which some datasets are declared with another layout and wait for their values.
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
  std::string to;  // a file of that name is emptied
  std::vector<NewLayout> layouts;
};

// Groups, links, attributes, types and all other datasets are as in `file`, which stands at `path`; a block of the
// user's before it is left empty. Under Hdf5Lock. Throws sdk::Error, CannotWrite where it is the copy's.
void copy_without_values(hid_t file, const std::string& path, const CopyRequest& request);

}  // namespace headroom
