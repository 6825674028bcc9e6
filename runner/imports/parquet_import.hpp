// Parquet tables, which Python's pyarrow reads.
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// Columns of numbers, and of lists of them that are as long in every row. Nulls of floats become NaN; others are an
// error.
Imported import_parquet(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target,
                        const ImportProgress& progress);

}  // namespace headroom
