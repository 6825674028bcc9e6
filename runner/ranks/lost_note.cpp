#include "ranks/lost_note.hpp"

#include <fstream>
#include <system_error>

namespace headroom {

void forget_lost_note(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::filesystem::remove(file, error);
}

void write_lost_note(const std::filesystem::path& file, const std::string& sentence) {
  std::ofstream(file) << sentence << '\n';
}

std::string read_lost_note(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string sentence;
  std::getline(stream, sentence);
  return sentence;
}

}  // namespace headroom
