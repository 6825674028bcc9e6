// Datasets that headroom.arrays answers for others.
#pragma once

#include <string>
#include <vector>

namespace headroom {

// `dataset` of `path`, as it is asked for, is read from `file`, under the same name.
struct Substitute {
  std::string path, dataset, file;
};

// In place of all there were. Arrays that are open stay what they are. [any]
void substitute_arrays(std::vector<Substitute> substitutes);

// Where `dataset` of `path` is read: `path` itself unless it has a substitute. [any]
std::string file_of_array(const std::string& path, const std::string& dataset);

}  // namespace headroom
