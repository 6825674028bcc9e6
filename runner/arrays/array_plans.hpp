// The plans of this process. A dataset is planned once; all arrays that read it share the plan. Unused plans are kept
// for a while (up to 4096 of them and 16 MiB), so that a dataset can be opened again without asking libhdf5.
#pragma once

#include <memory>
#include <string>

#include "arrays/hdf5_plan.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

struct PlannedArray {
  std::shared_ptr<const ArrayPlan> plan;
  std::shared_ptr<PlannedFile> file;  // the one that was planned; shared by all its datasets
};

// The plan of `dataset`, an absolute name ("/a/b"), in the file at `path`. The first call for a dataset asks the child
// process (hdf5_child.hpp) and takes milliseconds; later ones take a stat(). Throws sdk::Error where the dataset cannot
// be read, and where the file has changed while another array still reads its earlier state. [any]
PlannedArray planned_array(const std::string& path, const std::string& dataset);

}  // namespace headroom
