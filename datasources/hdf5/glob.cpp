#include "glob.hpp"

#include <set>

namespace hdf5_source {

namespace {

using Names = std::vector<std::string>;

Names parts_of(std::string_view path) {
  Names parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

bool matches_parts(const Names& pattern, std::size_t p, const Names& path, std::size_t n) {
  if (p == pattern.size()) return n == path.size();
  if (pattern[p] == "**") {
    for (std::size_t skip = n; skip <= path.size(); ++skip) {
      if (matches_parts(pattern, p + 1, path, skip)) return true;
    }
    return false;
  }
  return n < path.size() && matches(pattern[p], path[n]) && matches_parts(pattern, p + 1, path, n + 1);
}

// Visits what may lead to a match. list(path) gives the entries below; found(path, is_container) takes what matches.
template <class List, class Found>
void walk(const Names& pattern, std::size_t p, const std::string& at, const List& list, const Found& found) {
  const bool any_depth = pattern[p] == "**", last = p + 1 == pattern.size();
  if (any_depth && !last) walk(pattern, p + 1, at, list, found);
  for (const sdk::Entry& entry : list(at)) {
    const std::string path = at.empty() || at.back() == '/' ? at + entry.name : at + "/" + entry.name;
    if (any_depth) {
      if (last) found(path, entry.is_container);
      if (entry.is_container) walk(pattern, p, path, list, found);
    } else if (matches(pattern[p], entry.name)) {
      if (last) found(path, entry.is_container);
      if (!last && entry.is_container) walk(pattern, p + 1, path, list, found);
    }
  }
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::filesystem::path> find_files(const sdk::Host& host, const std::filesystem::path& folder,
                                              const std::vector<std::string>& patterns) {
  std::set<std::filesystem::path> files;
  const auto list = [&](const std::string& at) { return host.list_folder(folder / at); };
  const auto found = [&](const std::string& path, bool is_folder) {
    if (!is_folder) files.insert(folder / path);
  };
  for (const std::string& pattern : patterns) {
    const Names parts = parts_of(pattern);
    if (!parts.empty()) walk(parts, 0, "", list, found);
  }
  return {files.begin(), files.end()};
}

bool matches_below(const std::filesystem::path& folder, const std::string& pattern, const std::filesystem::path& file) {
  return matches_parts(parts_of(pattern), 0, parts_of(file.lexically_relative(folder).string()), 0);
}

std::vector<std::string> find_groups(const sdk::Host& host, const std::filesystem::path& file,
                                     const std::string& pattern) {
  const Names parts = parts_of(pattern);
  if (parts.empty()) return {"/"};
  std::set<std::string> groups;
  const auto list = [&](const std::string& at) { return host.list_arrays(file, at); };
  walk(parts, 0, "/", list, [&](const std::string& path, bool is_group) {
    if (is_group) groups.insert(path);
  });
  return {groups.begin(), groups.end()};
}

}  // namespace hdf5_source
