// Arrays that numpy saved: .npz, each a dataset of its name, and .npy, the dataset "array".
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// A compressed array is unpacked beside `to`, into a file without a name. What has no numbers is left out.
Imported import_numpy(const std::filesystem::path& from, const std::filesystem::path& to, ImportTarget& target,
                      const ImportProgress& progress);

}  // namespace headroom
