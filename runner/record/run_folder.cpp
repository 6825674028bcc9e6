#include "record/run_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "record/numbers.hpp"
#include "record/output_file.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

// A name that every file system takes and no shell trips over; UTF-8 letters stay.
std::string folder_name(const std::string& name) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+=";
  constexpr size_t longest = 100;
  std::string text;
  for (char c : name) {
    const bool keep = plain.find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
    text += keep ? c : '_';
  }
  if (text.size() > longest) {
    size_t end = longest;  // not inside a character
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
  }
  if (text.empty()) return "run";
  // A hidden folder would be overlooked, a leading dash be read as an option.
  if (text[0] == '.' || text[0] == '-') text[0] = '_';
  return text;
}

// Tells runs apart that begin within one second.
std::string random_id() {
  std::random_device source;
  char text[16];
  std::snprintf(text, sizeof text, "%06x", source() & 0xffffff);
  return text;
}

// From the process id that take_lock() writes.
std::string holder_of(int lock) {
  char text[32];
  const ssize_t length = ::pread(lock, text, sizeof text, 0);
  std::string number(text, static_cast<size_t>(std::max<ssize_t>(length, 0)));
  number = number.substr(0, number.find_first_not_of("0123456789"));
  return number.empty() ? "another process" : "process " + number;
}

// Asks with a shared lock, so that those who look do not take each other for the writer.
bool has_writer(int lock) {
  const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::flock(lock, LOCK_UN);
  return held;
}

// False: another process writes.
bool lock_to_write(int lock) {
  // Those who look hold the lock for an instant each; the bound is for one that was stopped meanwhile.
  for (int tries = 0; tries < 1000; ++tries) {
    // Network file systems without locks are used without one.
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    if (has_writer(lock)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Held until the descriptor is closed, so a killed process never leaves a lock behind.
int take_lock(const fs::path& folder) {
  const fs::path path = folder / "lock";
  // O_CLOEXEC: the lock belongs to the open file, so a child that inherits it would hold the lock as well.
  const int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) throw cannot_write(path, errno);
  if (!lock_to_write(lock)) {
    const std::string holder = holder_of(lock);
    ::close(lock);
    throw Error(Exit::cannot_write, "record",
                folder.string() + " is being written by " + holder + "; wait for it, stop it, or start a new run");
  }
  const std::string number = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, number.data(), number.size(), 0) < 0) {
    const int error = errno;
    ::close(lock);
    throw cannot_write(path, error);
  }
  return lock;
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "experiment.toml", error) || fs::exists(folder / "lock", error);
}

// "; did you mean runs/emg/20261121-063011-ab12cd?" when a folder above runs was given.
std::string newest_run_in(const fs::path& folder) {
  fs::path newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    // Names begin with the time in UTC, so the last one by name is the newest.
    if (is_run(entry.path())) newest = std::max(newest, entry.path());
  }
  return newest.empty() ? "" : "; did you mean " + newest.string() + "?";
}

}  // namespace

RunFolder RunFolder::create(const fs::path& out, const std::string& name) {
  const fs::path parent = out / folder_name(name);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) throw cannot_write(parent, error.value());
  for (;;) {
    fs::path path = parent / (compact_time(std::chrono::system_clock::now()) + "-" + random_id());
    // mkdir() tells who made the folder: of two processes with the same name one tries again.
    if (::mkdir(path.c_str(), 0777) == 0) {
      const int lock = take_lock(path);
      return RunFolder(std::move(path), lock);
    }
    if (errno != EEXIST) throw cannot_write(path, errno);
  }
}

RunFolder RunFolder::open(const fs::path& folder) {
  fs::path path = run_path(folder);
  const int lock = take_lock(path);
  return RunFolder(std::move(path), lock);
}

void RunFolder::tell(const fs::path& file) const {
  if (!file.empty()) write_file_atomically(file, fs::absolute(path_).lexically_normal().string() + "\n");
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

fs::path named_folder(const fs::path& folder) {
  std::error_code error;
  fs::path path = folder.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "." || path.filename() == "..") path = fs::canonical(folder, error);
  return path;
}

fs::path run_path(const fs::path& folder) {
  std::error_code error;
  const fs::path path = named_folder(folder);
  const std::string given = folder.string();
  if (!fs::is_directory(path, error)) throw Error(Exit::bad_input, "record", given + ": there is no such folder");
  if (is_run(path)) return path;
  throw Error(Exit::bad_input, "record",
              given + " is not a run's folder: it holds no experiment.toml" + newest_run_in(path));
}

bool is_being_written(const fs::path& folder) {
  const int lock = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool held = has_writer(lock);
  ::close(lock);
  return held;
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  if (!may_be_replaced(path)) {
    OutputFile file(path);
    file.write(bytes);
    return file.finish();
  }
  fs::path temporary = path;
  // A name of this write's own: others may write the same file now, as two reports of one run.
  temporary += "." + random_id() + ".tmp";
  try {
    OutputFile file(temporary);
    file.write(bytes);
    // On the disk before the rename: after a power cut the name must not lead to an empty file.
    file.finish();
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw cannot_write(path, errno);
  } catch (...) {
    std::error_code error;
    fs::remove(temporary, error);
    throw;
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

bool nests_too_deep(std::string_view json) {
  constexpr int deepest = 100;
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

nlohmann::json read_json_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  // A folder of that name opens too, and fails when it is read: this catches what the stream throws then.
  text << stream.rdbuf();
  return parse_json(text.view());
}

}  // namespace headroom
