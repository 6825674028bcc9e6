// Conversions item by item: progress, a name once an item is whole, a line in the record.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "arrays/hdf5_rewrite.hpp"
#include "cli/command_line.hpp"
#include "cli/convert_files.hpp"

namespace headroom {

// Writes one item to `partial`, where an older one may stand; what is said of it. Throws CannotWrite, sdk::Error or
// Error.
using WriteItem = std::function<std::string(const ConvertItem& item, const std::filesystem::path& partial,
                                            const RewriteProgress& progress)>;

// Those that are not done. One that cannot be read is told, and the others go on; the only one is an error.
void convert_all(const std::vector<ConvertItem>& items, WriteItem write, ConvertRecord& record,
                 const std::filesystem::path& to, CommandLine& line);

}  // namespace headroom
