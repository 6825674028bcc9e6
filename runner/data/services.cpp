#include "data/services.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <vector>

#include "arrays/array_session.hpp"
#include "arrays/arrays.hpp"
#include "arrays/open_files.hpp"
#include "data/cache_session.hpp"
#include "data/normalized_copies.hpp"
#include "plugins/host.hpp"
#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

[[noreturn]] void fail(const std::string& action, const std::string& path, int code) {
  if (code == ENOENT) throw sdk::Error(HR_NOT_FOUND, "'" + path + "' does not exist; check the path");
  throw sdk::Error(
      HR_IO, "cannot " + action + " '" + path + "': " + std::strerror(code) + "; check the path and its permissions");
}

hr_status size(const hr_host*, const char* path, uint64_t* bytes, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const std::string name = text(path, "path");
    struct stat found;
    if (stat(name.c_str(), &found) != 0) fail("look at", name, errno);
    if (S_ISDIR(found.st_mode)) fail("read", name, EISDIR);
    out_of(bytes) = static_cast<uint64_t>(found.st_size);
  });
}

// Opens the file for each call: nothing to close, and small metadata files are what it is for.
hr_status read_at(const hr_host*, const char* path, uint64_t offset, void* data, uint64_t bytes,
                  hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const std::string name = text(path, "path");
    const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) fail("open", name, errno);
    uint64_t done = 0;
    while (done < bytes) {
      const ssize_t part =
          pread(file.get(), static_cast<char*>(data) + done, bytes - done, static_cast<off_t>(offset + done));
      if (part < 0 && errno == EINTR) continue;
      if (part < 0) fail("read", name, errno);
      if (part == 0) {
        throw sdk::Error(HR_DATA_CORRUPT, "'" + name + "' ends at byte " + std::to_string(offset + done) + "; " +
                                              std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                                              " were expected: copy it again");
      }
      done += static_cast<uint64_t>(part);
    }
  });
}

struct Entry {
  std::string name;
  bool is_folder;
};

// Removes the host's normalised copies, which are next to their originals: a source would take them for recordings.
// `entries` are sorted by name.
void hide_copies(std::vector<Entry>& entries) {
  std::vector<std::string> copies;
  for (const Entry& entry : entries) {
    if (entry.is_folder) continue;
    std::string copy = entry.name + std::string(copy_suffix);
    if (std::ranges::binary_search(entries, copy, {}, &Entry::name)) copies.push_back(std::move(copy));
  }
  std::ranges::sort(copies);
  std::erase_if(entries, [&](const Entry& entry) { return std::ranges::binary_search(copies, entry.name); });
}

hr_status list(const hr_host*, const char* folder, int32_t (*visit)(void*, const char*, int32_t), void* context,
               hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const std::string path = text(folder, "folder");
    std::vector<Entry> entries;
    std::error_code problem;
    auto at = std::filesystem::directory_iterator(path, problem);
    while (!problem && at != std::filesystem::directory_iterator()) {
      std::string name = at->path().filename().string();
      std::error_code unknown;  // a link that leads nowhere is no folder
      if (name.front() != '.') entries.push_back({std::move(name), at->is_directory(unknown)});
      at.increment(problem);
    }
    if (problem) fail("list", path, problem.value());
    // In byte order, as abi.h promises: a folder has no order of its own.
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    hide_copies(entries);
    for (const Entry& entry : entries) {
      if (visit(context, entry.name.c_str(), entry.is_folder ? 1 : 0) != 0) return;
    }
  });
}

}  // namespace

const hr_files& files_service() {
  static const hr_files table{sizeof(hr_files), 0, size, read_at, list};
  return table;
}

void register_data_services() {
  register_array_services();
  register_service(HR_FILES, &files_service());
  register_service(HR_CACHE, &cache_service());
}

std::shared_ptr<Session> make_session(const DataSection& data) {
  auto arrays = std::make_shared<ArraySession>();
  arrays->map_files(data.memory_map);
  arrays->set_chunk_cache_limit(data.chunk_cache_size_bytes);
  auto cache = std::make_shared<CacheSession>();
  cache->blocks.set_limit(static_cast<uint64_t>(std::max<int64_t>(0, data.cache_size_bytes)));
  return Session::make(std::move(arrays), std::move(cache), static_cast<uint64_t>(std::max(1, data.num_workers)));
}

}  // namespace headroom
