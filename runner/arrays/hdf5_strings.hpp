// Datasets of strings.
#pragma once

#include <string>
#include <vector>

#include "arrays/hdf5.hpp"

namespace headroom {

// Row-major; fixed strings end at their first NUL (or lose the spaces they are padded with). Under Hdf5Lock. Throws
// sdk::Error for what is no dataset of strings, or is one of more than 2^20 of them or 64 MiB.
std::vector<std::string> read_strings(hid_t file, const std::string& dataset, const std::string& path);

}  // namespace headroom
