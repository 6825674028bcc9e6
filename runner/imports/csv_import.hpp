// Imports comma-separated values: rows of numbers, with or without a first line of names.
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// The separator is the first of tab, semicolon and comma that occurs in both of the first two rows outside of quotes.
// Empty cells become NaN; quotes around names are dropped. Throws sdk::Error, naming the line, where a row has another
// number of cells, or a cell of a numeric column is not a number.
Imported import_csv(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target,
                    const ImportProgress& progress);

}  // namespace headroom
