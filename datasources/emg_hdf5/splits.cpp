#include "splits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>

#include "csv.hpp"

namespace emg_hdf5 {

namespace {

using Files = std::map<std::string, std::filesystem::path>;  // by name without extension

constexpr std::array kSplits = {"train", "val", "test"};

struct Row {
  std::string name, split;
  std::size_t line = 0;
};

bool is_hdf5(const std::filesystem::path& file) { return file.extension() == ".hdf5" || file.extension() == ".h5"; }

Files recordings_in(const sdk::Host& host, const std::filesystem::path& folder) {
  Files files;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    const std::filesystem::path file = folder / entry.name;
    if (entry.is_container || !is_hdf5(file)) continue;
    const auto [same, added] = files.emplace(file.stem().string(), file);
    if (!added)
      sdk::invalid(same->second.string() + " and " + file.string() + " are one recording by name; keep one of them");
  }
  if (files.empty()) {
    throw sdk::Error(HR_NOT_FOUND, "no recording (*.hdf5, *.h5) lies in " + folder.string());
  }
  return files;
}

std::optional<std::filesystem::path> metadata_in(const sdk::Host& host, const std::filesystem::path& folder) {
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    if (entry.name == "metadata.csv" || entry.name == "emg2pose_metadata.csv") return folder / entry.name;
  }
  return std::nullopt;
}

// The rows of metadata.csv; nullopt when it has no column 'split'.
std::optional<std::vector<Row>> read_metadata(const sdk::Host& host, const std::filesystem::path& file) {
  const std::string text = host.read_text(file);
  CsvReader csv(text);
  std::vector<std::string> fields;
  std::vector<Row> rows;
  try {
    csv.next(fields);
    const auto column = [&](const char* name) {
      return static_cast<std::size_t>(std::ranges::find(fields, name) - fields.begin());
    };
    const std::size_t name = column("filename"), split = column("split"), columns = fields.size();
    if (split == columns) return std::nullopt;
    if (name == columns) {
      sdk::invalid(file.string() + ":1: there is no column 'filename'; found " + sdk::listing(fields));
    }
    while (csv.next(fields)) {
      if (fields.size() != columns) {
        sdk::invalid(file.string() + ":" + std::to_string(csv.line()) + ": " + std::to_string(fields.size()) +
                     " fields where the header has " + std::to_string(columns));
      }
      const std::filesystem::path path = fields[name];
      rows.push_back({is_hdf5(path) ? path.stem().string() : fields[name], fields[split], csv.line()});
    }
  } catch (const std::invalid_argument& problem) {
    sdk::invalid(file.string() + ": " + problem.what());
  }
  return rows;
}

std::vector<SplitFiles> divide(const sdk::Host& host, const Files& files, const std::vector<Row>& rows,
                               const std::filesystem::path& metadata, const SplitOptions& options) {
  std::map<std::string, std::set<std::filesystem::path>> splits;
  std::set<std::string> seen;
  std::vector<std::string> missing;
  for (const Row& row : rows) {
    const std::string where = metadata.string() + ":" + std::to_string(row.line) + ": ";
    if (std::ranges::find(kSplits, row.split) == kSplits.end()) {
      sdk::invalid(where + "split '" + row.split + "' of '" + row.name + "'; allowed are train, val and test");
    }
    if (!seen.insert(row.name).second) sdk::invalid(where + "'" + row.name + "' is named a second time");
    const auto file = files.find(row.name);
    if (file == files.end()) {
      missing.push_back(row.name);
    } else {
      splits[row.split].insert(file->second);
    }
  }
  if (rows.empty()) sdk::invalid(metadata.string() + " names no recording; add rows, or set splits = \"none\"");
  const std::string of_rows = std::to_string(missing.size()) + " of the " + std::to_string(rows.size());
  if (missing.size() == rows.size() || (!missing.empty() && !options.skip_missing_files)) {
    sdk::invalid(metadata.string() + " names " + of_rows + " recordings that are not in " + options.path.string() +
                 ", first '" + missing.front() +
                 "'; add them, take out their rows, or set skip_missing_files = true to train on what is there");
  }
  if (!missing.empty()) host.warn(of_rows + " recordings that " + metadata.string() + " names are not there: left out");
  const std::size_t unnamed = files.size() - (rows.size() - missing.size());
  if (unnamed > 0) {
    host.warn(std::to_string(unnamed) + " of " + std::to_string(files.size()) + " recordings are not named in " +
              metadata.string() + ": left out");
  }
  std::vector<SplitFiles> result;
  for (const char* name : kSplits) {
    if (splits.contains(name)) result.push_back({name, {splits[name].begin(), splits[name].end()}});
  }
  return result;
}

}  // namespace

Found find_recordings(const sdk::Host& host, const SplitOptions& options) {
  if (options.mode == "none" && options.metadata) {
    sdk::invalid("metadata is set, but splits = \"none\" does not read it; take out one of the two");
  }
  std::error_code error;
  const bool is_file = !std::filesystem::is_directory(options.path, error) && is_hdf5(options.path);
  Files files;
  if (is_file) {
    files.emplace(options.path.stem().string(), options.path);
  } else {
    files = recordings_in(host, options.path);
  }
  std::optional<std::filesystem::path> metadata = options.metadata;
  if (!metadata && options.mode != "none" && !is_file) metadata = metadata_in(host, options.path);
  if (!metadata && options.mode == "metadata") {
    sdk::invalid("splits = \"metadata\", but there is no metadata.csv in " + options.path.string() +
                 "; set metadata to its path, or splits = \"none\" to have the host divide the recordings");
  }
  if (metadata) {
    if (const auto rows = read_metadata(host, *metadata))
      return {divide(host, files, *rows, *metadata, options), metadata};
    if (options.metadata || options.mode == "metadata") {
      sdk::invalid(metadata->string() + ":1: there is no column 'split'; set splits = \"none\" to do without");
    }
  }
  SplitFiles all{"all", {}};
  for (const auto& [name, file] : files) all.files.push_back(file);
  return {{all}, std::nullopt};
}

}  // namespace emg_hdf5
