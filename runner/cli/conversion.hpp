// `headroom data convert`: its options, and the conversion item by item.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "arrays/hdf5_rewrite.hpp"
#include "cli/command_line.hpp"
#include "cli/convert_files.hpp"

namespace headroom {

struct ConvertWords {
  std::string path, out, source, from;  // source and from "": HDF5 files in another layout
  std::vector<std::string> columns;
  ExperimentWords set;
  std::vector<uint64_t> chunk;
  int deflate = -1;
  bool contiguous = false, shuffle = false, verify = true;
};

struct Written {
  std::string summary;                 // for the line that reports it
  std::vector<OtherFile> others = {};  // other files that it was made from
};

// Writes one item to `partial`, overwriting an older file. Throws CannotWrite, sdk::Error or Error.
using WriteItem = std::function<Written(const ConvertItem& item, const std::filesystem::path& partial,
                                        const RewriteProgress& progress)>;

// Converts the items that are not done yet. An item that cannot be read is reported and the others go on; where it is
// the only one, it is an error.
void convert_all(const std::vector<ConvertItem>& items, WriteItem write, ConvertRecord& record,
                 const std::filesystem::path& to, CommandLine& line);

// "1.5 MiB"; throws std::filesystem::filesystem_error.
std::string file_size_text(const std::filesystem::path& file);

}  // namespace headroom
