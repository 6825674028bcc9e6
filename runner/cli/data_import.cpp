#include "cli/data_import.hpp"

#include <algorithm>
#include <system_error>

#include "error.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_import(const std::string& sentence) { throw Error(Exit::bad_input, "data convert", sentence); }

std::vector<ConvertItem> files_to_import(const fs::path& from, const fs::path& to, ImportFormat format,
                                         const ConvertRecord& record) {
  require_apart(from, to);
  std::vector<ConvertItem> items;
  std::error_code failed;
  if (fs::is_directory(from, failed)) {
    for (const fs::path& file : regular_files(from)) {
      if (format_of(file) != format) continue;
      items.push_back({file, (to / file.lexically_relative(from)).replace_extension(".hdf5")});
    }
    if (items.empty()) refuse_import("no file of the format " + format_name(format) + " is in " + from.string());
  } else {
    if (!fs::is_regular_file(from, failed)) refuse_import(from.string() + " is neither a file nor a folder");
    if (!is_hdf5_name(to)) refuse_import("--out " + to.string() + " will be an HDF5 file; let its name end in .hdf5");
    items.push_back({from, to});
  }
  look_for_done(items, record);
  return items;
}

std::string text_of(const ConvertWords& words, const ImportOptions& options) {
  std::string text = "from " + format_name(options.format);
  for (const std::string& columns : words.columns) text += " columns " + columns;
  return text + (options.deflate > 0 ? " deflate " + std::to_string(options.deflate) : "");
}

Written write_imported(const ConvertItem& item, const fs::path& partial, const ImportOptions& options,
                       const RewriteProgress& progress) {
  const Imported imported = import_file(item.from, partial, options, progress);
  std::string left_out;
  for (const std::string& name : imported.left_out) left_out += (left_out.empty() ? ", left out: " : ", ") + name;
  return {file_size_text(item.from) + " -> " + file_size_text(partial) + ", " + counted(imported.datasets, "dataset") +
          printable(left_out, 400)};
}

}  // namespace

std::optional<ImportOptions> import_options(const ConvertWords& words) {
  std::error_code failed;
  std::optional<ImportFormat> format;
  if (!words.from.empty()) {
    format = format_named(words.from);
  } else if (words.source.empty() && fs::is_regular_file(words.path, failed) && is_hdf5_name(words.out)) {
    format = format_of(words.path);
  }
  const bool is_table = format == ImportFormat::csv || format == ImportFormat::parquet;
  if (!words.columns.empty() && !is_table)
    throw Error(Exit::bad_input, "cli", "--columns chooses columns of --from csv and --from parquet");
  if (!format) return std::nullopt;
  if (!words.source.empty())
    throw Error(Exit::bad_input, "cli", "--from and --source are two ways to convert; choose one");
  if (words.contiguous || words.shuffle || !words.chunk.empty())
    throw Error(Exit::bad_input, "cli",
                "--from takes --deflate alone; convert the HDF5 files again for --chunk, --shuffle or --contiguous");
  ImportOptions options{*format, {}, std::max(0, words.deflate), words.verify};
  for (const std::string& word : words.columns) options.columns.push_back(column_group(word));
  return options;
}

void import_files(const ConvertWords& words, const ImportOptions& options, const fs::path& folder, CommandLine& line) {
  ConvertRecord record(folder, text_of(words, options));
  const auto items = files_to_import(words.path, words.out, options.format, record);
  const auto write = [&](const ConvertItem& item, const fs::path& partial, const RewriteProgress& progress) {
    return write_imported(item, partial, options, progress);
  };
  convert_all(items, write, record, words.out, line);
}

}  // namespace headroom
