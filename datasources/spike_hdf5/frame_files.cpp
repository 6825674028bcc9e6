#include "frame_files.hpp"

#include <algorithm>
#include <string_view>

namespace spike_hdf5 {

namespace fs = std::filesystem;

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits that `text` begins with, but for leading zeros; moves `text` behind them.
std::string_view take_number(std::string_view& text) {
  const std::size_t first = std::min(text.find_first_not_of('0'), text.size());
  std::size_t end = first;
  while (end < text.size() && is_digit(text[end])) ++end;
  const std::string_view number = text.substr(first, end - first);
  text.remove_prefix(end);
  return number;
}

// "2.png" before "10.png": numbers in names count as such, everything else goes by its bytes.
bool is_before(std::string_view one, std::string_view other) {
  const std::string_view whole = one, other_whole = other;
  while (!one.empty() && !other.empty()) {
    if (is_digit(one.front()) && is_digit(other.front())) {
      const std::string_view a = take_number(one), b = take_number(other);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
    } else {
      if (one.front() != other.front())
        return static_cast<unsigned char>(one.front()) < static_cast<unsigned char>(other.front());
      one.remove_prefix(1);
      other.remove_prefix(1);
    }
  }
  return one.empty() != other.empty() ? one.empty() : whole < other_whole;
}

}  // namespace

std::vector<fs::path> files_of(const sdk::Host& host, const fs::path& folder, const char* extension) {
  std::vector<fs::path> files;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    fs::path file = folder / entry.name;
    if (!entry.is_container && file.extension() == extension) files.push_back(std::move(file));
  }
  std::ranges::sort(files, [](const fs::path& one, const fs::path& other) {
    return is_before(one.filename().string(), other.filename().string());
  });
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
    const bool missing = both ? is_before(name(files[i]), name(others[i])) : i < files.size();
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
