// Imports Parquet tables, which Python's pyarrow reads.
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// Imports columns of numbers, and of lists of numbers whose length is the same in every row. Nulls of floats become
// NaN; other nulls are an error.
Imported import_parquet(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target,
                        const ImportProgress& progress);

}  // namespace headroom
