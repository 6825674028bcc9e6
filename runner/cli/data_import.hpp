// `headroom data convert --from`: files of another format become HDF5.
#pragma once

#include <optional>

#include "cli/conversion.hpp"
#include "imports/import_file.hpp"

namespace headroom {

// --from asks for it, or the names of both files do. nullopt: they are HDF5 files. Error(bad_input).
std::optional<ImportOptions> import_options(const ConvertWords& words);

// The files below words.path that are of this format, or itself; `folder` gets the record. Error(bad_input) where there
// are none.
void import_files(const ConvertWords& words, const ImportOptions& options, const std::filesystem::path& folder,
                  CommandLine& line);

}  // namespace headroom
