// Which recordings a source has and which split each belongs to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"

namespace emg_hdf5 {

namespace sdk = headroom::sdk;

struct SplitFiles {
  std::string name;  // "train", "val", "test"; or "all"
  std::vector<std::filesystem::path> files;
};

struct Found {
  std::vector<SplitFiles> splits;                 // in the order train, val, test, files by name; or one split "all"
  std::optional<std::filesystem::path> metadata;  // the file that divided them
};

struct SplitOptions {
  std::filesystem::path path;                     // a folder or one file
  std::optional<std::filesystem::path> metadata;  // default: metadata.csv or emg2pose_metadata.csv in the folder
  std::string mode = "auto";                      // "metadata", "none"
  bool skip_missing_files = false;
};

// Throws HR_INVALID_ARGUMENT for metadata that cannot be followed, HR_NOT_FOUND for a folder without recordings.
Found find_recordings(const sdk::Host& host, const SplitOptions& options);

}  // namespace emg_hdf5
