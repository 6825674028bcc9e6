// The plans of this process: made once for a dataset, shared by all who read it, kept while they are likely to be used
// again.
#pragma once

#include <memory>
#include <string>

#include "arrays/hdf5_plan.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

struct PlannedArray {
  std::shared_ptr<const ArrayPlan> plan;
  std::shared_ptr<PlannedFile> file;
};

// [any] `dataset` is absolute. Throws sdk::Error for what cannot be read, and where another array still reads the file
// as it was before.
PlannedArray planned_array(const std::string& path, const std::string& dataset);

}  // namespace headroom
