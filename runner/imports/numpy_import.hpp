// Imports arrays that numpy saved: each array of an .npz becomes a dataset of its name, the one of an .npy the dataset
// "array".
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// A compressed array is unpacked to an unnamed file in the folder of `to`. Arrays without numbers are left out.
Imported import_numpy(const std::filesystem::path& from, const std::filesystem::path& to, ImportTarget& target,
                      const ImportProgress& progress);

}  // namespace headroom
