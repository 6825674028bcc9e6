#include "layout.hpp"

#include <array>

namespace spike_hdf5 {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kSplits = {"train", "val", "test"};

bool is_hdf5(const fs::path& file) { return file.extension() == ".hdf5" || file.extension() == ".h5"; }

std::vector<Place> hdf5_files(const sdk::Host& host, const fs::path& folder) {
  std::vector<Place> places;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    const fs::path file = folder / entry.name;
    if (!entry.is_container && is_hdf5(file)) places.push_back({file.stem().string(), file});
  }
  return places;
}

std::vector<SplitPlaces> hdf5_splits(const sdk::Host& host, const fs::path& path) {
  if (is_hdf5(path)) return {{"all", {{path.stem().string(), path}}}};
  std::vector<SplitPlaces> splits;
  for (const char* name : kSplits) {
    if (!fs::is_directory(path / name)) continue;
    splits.push_back({name, hdf5_files(host, path / name)});
    if (splits.back().sequences.empty())
      throw sdk::Error(HR_NOT_FOUND, "no sequence (*.hdf5 or *.h5) lies in " + (path / name).string() +
                                         "; put some there, or remove the folder");
  }
  if (!splits.empty()) return splits;
  splits.push_back({"all", hdf5_files(host, path)});
  if (splits.back().sequences.empty()) {
    throw sdk::Error(HR_NOT_FOUND, "no sequence (*.hdf5 or *.h5) lies in " + path.string() +
                                       " or in train/, val/ and test/ below it");
  }
  return splits;
}

}  // namespace

Layout layout_of(const sdk::Host&, const std::string&, const fs::path&) { return Layout::hdf5; }

std::vector<SplitPlaces> find_sequences(const sdk::Host& host, Layout, const fs::path& path) {
  return hdf5_splits(host, path);
}

}  // namespace spike_hdf5
