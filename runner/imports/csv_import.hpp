// Comma-separated values: a line of names, where there is one, and numbers below them.
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// Cells are divided by tabs, semicolons or commas, the first of them that stands in both of the first two rows outside
// of quotes. Empty cells become NaN; in names quotes are dropped. Throws sdk::Error naming the line where a row has another number of cells, or a column of
// numbers something else.
Imported import_csv(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target,
                    const ImportProgress& progress);

}  // namespace headroom
