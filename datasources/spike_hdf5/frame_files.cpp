#include "frame_files.hpp"

#include <algorithm>

namespace spike_hdf5 {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const sdk::Host& host, const fs::path& folder, const char* extension) {
  std::vector<fs::path> files;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    fs::path file = folder / entry.name;
    if (!entry.is_container && file.extension() == extension) files.push_back(std::move(file));
  }
  return files;
}

std::vector<fs::path> files_like(const sdk::Host& host, const std::vector<fs::path>& files, const fs::path& folder,
                                 const char* extension) {
  // The order is that of whole names: "a-b.png" stands before "a.png".
  const auto name = [](const fs::path& file) { return file.stem().string() + "."; };
  std::vector<fs::path> others = files_of(host, folder, extension);
  for (std::size_t i = 0; i < std::max(files.size(), others.size()); ++i) {
    const bool both = i < files.size() && i < others.size();
    if (both && name(files[i]) == name(others[i])) continue;
    const bool missing = both ? name(files[i]) < name(others[i]) : i < files.size();
    const fs::path& lone = missing ? files[i] : others[i];
    const fs::path other = missing
                               ? folder / lone.stem().concat(extension)
                               : files.front().parent_path() / lone.stem().concat(files.front().extension().string());
    bad_data(lone, "it has no " + other.string() + " beside it; add it, or take the frame out");
  }
  return others;
}

FrameFiles files_in(const sdk::Host& host, const Folders& folders, const Wanted& wanted) {
  const auto first_of = [&](const fs::path& folder, const char* extension) {
    std::vector<fs::path> files = files_of(host, folder, extension);
    if (files.empty()) bad_data(folder, "no frame (*" + std::string(extension) + ") lies there; take the sequence out");
    return files;
  };
  FrameFiles files;
  const std::vector<fs::path>* named = nullptr;  // whose names the others have
  const auto add = [&](std::vector<fs::path>& to, const fs::path& folder, const char* extension) {
    to = named == nullptr ? first_of(folder, extension) : files_like(host, *named, folder, extension);
    if (named == nullptr) named = &to;
  };
  if (wanted.blur) add(files.blur, folders.blur, ".png");
  if (wanted.sharp) add(files.sharp, folders.sharp, ".png");
  if (wanted.voxel) add(files.spikes, folders.spikes, ".dat");
  return files;
}

}  // namespace spike_hdf5
