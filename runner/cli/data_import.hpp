// `headroom data convert --from`: files of another format become HDF5.
#pragma once

#include <optional>

#include "cli/conversion.hpp"
#include "imports/import_file.hpp"

namespace headroom {

// The import that --from asks for, or that the names of both files imply. nullopt: both are HDF5 files.
// Error(bad_input).
std::optional<ImportOptions> import_options(const ConvertWords& words);

// Imports the files of this format in words.path, or words.path itself. `folder` gets the record. Error(bad_input)
// where there are none.
void import_files(const ConvertWords& words, const ImportOptions& options, const std::filesystem::path& folder,
                  CommandLine& line);

}  // namespace headroom
