#include "arrays/substitutes.hpp"

#include <map>
#include <utility>

#include "arrays/hdf5_object.hpp"
#include "mutex.hpp"

namespace headroom {

namespace {

struct Table {
  Mutex mutex;
  std::map<std::pair<std::string, std::string>, std::string> files GUARDED_BY(mutex);
};

Table& table() {
  static auto* made = new Table;
  return *made;
}

}  // namespace

void substitute_arrays(std::vector<Substitute> substitutes) {
  std::map<std::pair<std::string, std::string>, std::string> files;
  for (Substitute& substitute : substitutes) {
    files[{std::move(substitute.path), absolute_name(substitute.dataset)}] = std::move(substitute.file);
  }
  const MutexLock lock(table().mutex);
  table().files.swap(files);
}

std::string file_of_array(const std::string& path, const std::string& dataset) {
  const MutexLock lock(table().mutex);
  if (table().files.empty()) return path;
  const auto found = table().files.find({path, absolute_name(dataset)});
  return found == table().files.end() ? path : found->second;
}

}  // namespace headroom
