#include "imports/import_file.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "arrays/open_files.hpp"
#include "error.hpp"
#include "imports/csv_import.hpp"
#include "imports/numpy_import.hpp"
#include "imports/parquet_import.hpp"
#include "imports/video_import.hpp"

namespace headroom {

namespace {

struct Format {
  ImportFormat format;
  std::string_view name;
  std::vector<std::string_view> endings;
};

const std::vector<Format>& formats() {
  static const auto* all = new std::vector<Format>{
      {ImportFormat::csv, "csv", {".csv", ".tsv", ".txt"}},
      {ImportFormat::numpy, "numpy", {".npz", ".npy"}},
      {ImportFormat::parquet, "parquet", {".parquet"}},
      {ImportFormat::video, "video", {".mp4", ".mkv", ".avi", ".mov", ".webm"}},
  };
  return *all;
}

Imported import_into(ImportTarget& target, const std::filesystem::path& from, const std::filesystem::path& to,
                     const ImportOptions& options, const ImportProgress& progress) {
  switch (options.format) {
    case ImportFormat::csv:
      return import_csv(from, options, target, progress);
    case ImportFormat::numpy:
      return import_numpy(from, to, target, progress);
    case ImportFormat::parquet:
      return import_parquet(from, options, target, progress);
    case ImportFormat::video:
      return import_video(from, target, progress);
  }
  throw Error(Exit::bug, "data convert", "there is no such format");
}

}  // namespace

std::string format_name(ImportFormat format) {
  return std::string(std::ranges::find(formats(), format, &Format::format)->name);
}

ImportFormat format_named(const std::string& name) {
  const auto found = std::ranges::find(formats(), name, &Format::name);
  if (found == formats().end())
    throw Error(Exit::bad_input, "cli", "--from " + name + " is none of csv, numpy, parquet and video");
  return found->format;
}

std::optional<ImportFormat> format_of(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  // Cameras and instruments write CLIP.MP4 and LOG.CSV.
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const Format& format : formats()) {
    if (std::ranges::find(format.endings, ending) != format.endings.end()) return format.format;
  }
  return std::nullopt;
}

Imported import_file(const std::filesystem::path& from, const std::filesystem::path& to, const ImportOptions& options,
                     const ImportProgress& progress) {
  try {
    ImportTarget target(to, options.deflate);
    Imported imported = import_into(target, from, to, options, progress);
    target.finish(options.verify);
    return imported;
  } catch (const CannotWrite&) {
    throw;
  } catch (const sdk::Error& problem) {
    throw sdk::Error(problem.status(), in_quotes(from.string()) + " cannot be converted: " + problem.what());
  }
}

}  // namespace headroom
