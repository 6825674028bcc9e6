// `headroom data convert --from`: files of other formats as HDF5, in constant memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "imports/import_target.hpp"
#include "imports/table_import.hpp"

namespace headroom {

enum class ImportFormat { csv, numpy, parquet, video };

std::string format_name(ImportFormat format);  // as --from names it
// Throws Error(bad_input) for another name.
ImportFormat format_named(const std::string& name);
// By the ending of its name; nullopt: none of them.
std::optional<ImportFormat> format_of(const std::filesystem::path& file);

struct ImportOptions {
  ImportFormat format = ImportFormat::csv;
  std::vector<ColumnGroup> columns = {};  // of tables; {}: all that have numbers
  int deflate = 0;
  bool verify = true;
};

// Called after every block. `all` 0: not known. May throw to end the work.
using ImportProgress = std::function<void(uint64_t done, uint64_t all)>;

struct Imported {
  uint64_t datasets = 0;
  std::vector<std::string> left_out = {};  // names of what an HDF5 file of numbers cannot hold
};

// Writes `to`. Throws sdk::Error where `from` is at fault, CannotWrite where the disk is, Error(bad_input) where a
// program that reads this format is not there.
Imported import_file(const std::filesystem::path& from, const std::filesystem::path& to, const ImportOptions& options,
                     const ImportProgress& progress);

}  // namespace headroom
