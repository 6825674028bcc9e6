#include "arrays/other_files.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include "arrays/hdf5_object.hpp"

namespace headroom {

namespace fs = std::filesystem;

std::string file_named_in(const fs::path& from, const std::string& name) {
  const fs::path folder = from.parent_path(), path(name);
  std::error_code unknown;
  for (const fs::path& place :
       {path.is_absolute() ? path : folder / path, path.is_absolute() ? folder / path.filename() : path}) {
    if (fs::exists(place, unknown)) return place.string();
  }
  return name;
}

std::vector<std::string> virtual_sources(hid_t creation) {
  std::vector<std::string> names;
  size_t count = 0;
  if (H5Pget_layout(creation) != H5D_VIRTUAL || H5Pget_virtual_count(creation, &count) < 0) return names;
  for (size_t i = 0; i < count; ++i) {
    // The length comes without the NUL, which the second call writes too.
    const ssize_t length = H5Pget_virtual_filename(creation, i, nullptr, 0);
    std::string name(length > 0 ? static_cast<size_t>(length) + 1 : 1, '\0');
    H5Pget_virtual_filename(creation, i, name.data(), name.size());
    name.pop_back();
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<OtherFile> other_files_of(hid_t dataset, const std::string& path) {
  std::vector<std::string> names;
  // The file that an external link led to.
  const fs::path own = fs::absolute(file_name(dataset));
  std::error_code unknown;
  if (!fs::equivalent(own, path, unknown)) names.push_back(own.string());
  const Handle creation(H5Dget_create_plist(dataset));
  for (const std::string& name : virtual_sources(creation.get())) {
    if (name != ".") names.push_back(file_named_in(own, name));
  }
  const int parts = H5Pget_external_count(creation.get());
  for (int i = 0; i < parts; ++i) {
    char name[4096] = "";
    off_t offset = 0;
    hsize_t bytes = 0;
    // Relative names are relative to the working folder of the reading process.
    if (H5Pget_external(creation.get(), static_cast<unsigned>(i), sizeof name - 1, name, &offset, &bytes) >= 0)
      names.emplace_back(name);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<OtherFile> files;
  for (std::string& name : names) files.push_back({std::move(name)});
  return files;
}

std::vector<OtherFile> as_they_are(std::vector<OtherFile> files) {
  for (OtherFile& file : files) {
    struct stat found {};
    file.identity = stat(file.path.c_str(), &found) == 0 ? FileIdentity::of(found) : FileIdentity{};
  }
  return files;
}

void require_unchanged(const std::vector<OtherFile>& files) {
  if (files.empty()) return;
  const std::vector<OtherFile> now = as_they_are(files);
  const auto changed = std::ranges::mismatch(files, now).in1;
  if (changed != files.end()) throw_changed(changed->path);
}

}  // namespace headroom
