#include "layout.hpp"

#include <algorithm>
#include <array>

#include "folder_sequence.hpp"
#include "hdf5_sequence.hpp"

namespace spike_hdf5 {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kSplits = {"train", "val", "test"};

bool is_hdf5(const fs::path& file) { return file.extension() == ".hdf5" || file.extension() == ".h5"; }
bool is_stream(const fs::path& file) { return file.extension() == ".dat"; }

std::vector<Place> hdf5_files(const sdk::Host& host, const fs::path& folder) {
  std::vector<Place> places;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    const fs::path file = folder / entry.name;
    if (!entry.is_container && is_hdf5(file)) places.push_back({file.stem().string(), file});
  }
  if (places.empty())
    throw sdk::Error(HR_NOT_FOUND, "no sequence (*.hdf5 or *.h5) lies in " + folder.string() + "; put some there");
  return places;
}

// GOPRO_Large/<split>/<sequence>/{blur_gamma,sharp}/*.png, GOPRO_Large_spike_seq/<split>/<sequence>/spike/*.dat
fs::path spk_frames(const fs::path& path) { return path / "GOPRO_Large"; }
fs::path spk_spikes(const fs::path& path) { return path / "GOPRO_Large_spike_seq"; }

// GOPRO/<split>/{blur_data,sharp_data,spike_data}/<sequence>/*
fs::path s_sdm_root(const fs::path& path) { return fs::is_directory(path / "GOPRO") ? path / "GOPRO" : path; }

bool has_splits_with(const fs::path& root, const fs::path& inside) {
  return std::ranges::any_of(kSplits, [&](const char* split) { return fs::is_directory(root / split / inside); });
}

// input/*.dat and gt/*.png, or both in one folder
fs::path picture_of(const fs::path& stream) {
  const fs::path folder = stream.parent_path();
  const fs::path pictures = folder.filename() == "input" ? folder.parent_path() / "gt" : folder;
  return pictures / stream.stem().concat(".png");
}

bool has_pair_folders(const fs::path& folder) {
  return fs::is_directory(folder / "input") && fs::is_directory(folder / "gt");
}

bool holds(const fs::path& folder, bool (*is_such)(const fs::path&)) {
  std::error_code failed;
  const fs::directory_iterator entries(folder, failed);
  return !failed && std::ranges::any_of(entries, [&](const auto& entry) { return is_such(entry.path()); });
}

// `found` of the folder itself or of one of its splits.
template <class Found>
bool anywhere(const fs::path& path, Found&& found) {
  return found(path) || std::ranges::any_of(kSplits, [&](const char* split) { return found(path / split); });
}

bool looks_like_hdf5(const fs::path& path) {
  return is_hdf5(path) || anywhere(path, [](const fs::path& folder) { return holds(folder, is_hdf5); });
}

bool looks_like_pairs(const fs::path& path) {
  return is_stream(path) ||
         anywhere(path, [](const fs::path& folder) { return has_pair_folders(folder) || holds(folder, is_stream); });
}

std::vector<Place> pairs(const sdk::Host& host, const fs::path& folder) {
  const fs::path streams = fs::is_directory(folder / "input") ? folder / "input" : folder;
  const std::vector<fs::path> files = files_of(host, streams, ".dat");
  if (files.empty())
    throw sdk::Error(HR_NOT_FOUND, "no spike stream (*.dat) lies in " + streams.string() + "; put some there");
  files_like(host, files, picture_of(files.front()).parent_path(), ".png");
  std::vector<Place> places;
  for (const fs::path& file : files) places.push_back({file.stem().string(), file, picture_of(file), file});
  return places;
}

std::vector<Place> folders(const sdk::Host& host, Layout layout, const fs::path& path, const std::string& split) {
  const bool spk = layout == Layout::spk_gopro;
  const fs::path root = spk ? spk_frames(path) / split : s_sdm_root(path) / split;
  std::vector<Place> places;
  for (const sdk::Entry& entry : host.list_folder(spk ? root : root / "blur_data")) {
    if (!entry.is_container) continue;
    const fs::path name = entry.name;
    if (spk) {
      places.push_back(
          {entry.name, root / name / "blur_gamma", root / name / "sharp", spk_spikes(path) / split / name / "spike"});
    } else {
      places.push_back({entry.name, root / "blur_data" / name, root / "sharp_data" / name, root / "spike_data" / name});
    }
  }
  if (places.empty()) throw sdk::Error(HR_NOT_FOUND, "no sequence lies in " + root.string() + "; put some there");
  return places;
}

}  // namespace

Layout layout_of(const std::string& name, const fs::path& path) {
  if (name == "hdf5") return Layout::hdf5;
  if (name == "spk_gopro") return Layout::spk_gopro;
  if (name == "s_sdm") return Layout::s_sdm;
  if (name == "pairs") return Layout::pairs;
  if (fs::is_directory(spk_frames(path))) return Layout::spk_gopro;
  if (has_splits_with(s_sdm_root(path), "blur_data")) return Layout::s_sdm;
  if (looks_like_hdf5(path)) return Layout::hdf5;
  if (looks_like_pairs(path)) return Layout::pairs;
  if (has_splits_with(path, "")) return Layout::hdf5;
  throw sdk::Error(HR_NOT_FOUND,
                   path.string() +
                       " is none of the layouts known: sequences (*.hdf5) in it or in its train/, val/ and "
                       "test/ (hdf5), GOPRO_Large/ and GOPRO_Large_spike_seq/ (spk_gopro), GOPRO/ with "
                       "train/blur_data/ (s_sdm), streams (*.dat) with a picture each, or input/ and gt/ (pairs); "
                       "check path, or say which with layout");
}

Size spike_size_of(Layout layout) {
  if (layout == Layout::spk_gopro) return {360, 640};
  if (layout == Layout::s_sdm) return {180, 320};
  return {};
}

std::vector<SplitPlaces> find_sequences(const sdk::Host& host, Layout layout, const fs::path& path) {
  if ((layout == Layout::hdf5 && is_hdf5(path)) || (layout == Layout::pairs && is_stream(path)))
    return {{"all", {sequence_at(path)}}};
  const fs::path root = layout == Layout::spk_gopro ? spk_frames(path)
                        : layout == Layout::s_sdm   ? s_sdm_root(path)
                                                    : path;
  const auto places = [&](const std::string& split) {
    if (layout == Layout::hdf5) return hdf5_files(host, path / split);
    if (layout == Layout::pairs) return pairs(host, path / split);
    return folders(host, layout, path, split);
  };
  std::vector<SplitPlaces> splits;
  for (const char* name : kSplits) {
    if (fs::is_directory(root / name)) splits.push_back({name, places(name)});
  }
  if (!splits.empty()) return splits;
  if (layout == Layout::hdf5) return {{"all", hdf5_files(host, path)}};
  if (layout == Layout::pairs) return {{"all", pairs(host, path)}};
  throw sdk::Error(HR_NOT_FOUND, "no train/, val/ or test/ lies in " + root.string());
}

Place sequence_at(const fs::path& path) {
  if (is_hdf5(path)) return {path.stem().string(), path};
  if (is_stream(path)) return {path.stem().string(), path, picture_of(path), path};
  const fs::path folder = path.has_filename() ? path : path.parent_path(), name = folder.filename();
  const fs::path above = folder.parent_path(), root = above.parent_path();
  if (fs::is_directory(folder / "blur_gamma")) {
    const fs::path spikes = spk_spikes(root.parent_path()) / above.filename() / name / "spike";
    return {name, folder / "blur_gamma", folder / "sharp", spikes};
  }
  if (above.filename() == "blur_data") return {name, folder, root / "sharp_data" / name, root / "spike_data" / name};
  bad_data(path,
           "it is no sequence; give an *.hdf5 file, a spike stream (*.dat) of the layout pairs, or a folder "
           "GOPRO_Large/<split>/<sequence> or <split>/blur_data/<sequence>");
}

bool has_sharp(const sdk::Host& host, const Place& place) {
  if (!is_hdf5(place.path)) return fs::exists(place.sharp);
  const std::vector<sdk::Entry> datasets = host.list_arrays(place.path);
  return std::ranges::find(datasets, "sharp", &sdk::Entry::name) != datasets.end();
}

std::unique_ptr<Sequence> open_sequence(const sdk::Host& host, const Place& place, const Wanted& wanted) {
  if (is_hdf5(place.path)) return std::make_unique<Hdf5Sequence>(host, place.path, wanted);
  FrameFiles files;
  if (!is_stream(place.path)) {
    files = files_in(host, {place.path, place.sharp, place.spikes}, wanted);
  } else {
    if (wanted.sharp) files.sharp = {place.sharp};
    if (wanted.voxel) files.spikes = {place.spikes};
  }
  return std::make_unique<FolderSequence>(host, std::move(files), wanted);
}

}  // namespace spike_hdf5
