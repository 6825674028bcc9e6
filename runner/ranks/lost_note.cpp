#include "ranks/lost_note.hpp"

#include <fstream>
#include <system_error>

#include "mutex.hpp"

namespace headroom {

namespace {

Mutex mutex;
std::filesystem::path place GUARDED_BY(mutex);

}  // namespace

void keep_lost_note_at(const std::filesystem::path& file) {
  const MutexLock lock(mutex);
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::filesystem::remove(file, error);
  place = file;
}

void write_lost_note(const std::string& sentence) {
  const MutexLock lock(mutex);
  if (!place.empty()) std::ofstream(place) << sentence << '\n';
}

std::string read_lost_note(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string sentence;
  std::getline(stream, sentence);
  return sentence;
}

}  // namespace headroom
