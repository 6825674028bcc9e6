#include "memory/reservation_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.hpp"
#include "own_suffix.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "run-";
constexpr const char* folder_name = "headroom-reservations";
// Any user may write there: anything beyond is not read.
constexpr size_t longest_entry = 16384;
constexpr int most_entries = 4096;  // whoever fills the folder slows nobody down for long

int open_folder(const fs::path& path, int flags = 0) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

// In a sticky folder nobody but a file's owner (and the folder's) removes or renames it.
bool shared_safely(int folder) {
  struct stat status {};
  return ::fstat(folder, &status) == 0 && (status.st_mode & 01777) == 01777;
}

// Appears at once with its permissions: another run must not find it half made and look elsewhere.
void make_shared_folder(const fs::path& parent) {
  std::string made = parent / ".headroom-XXXXXX";
  if (::mkdtemp(made.data()) == nullptr) return;
  const bool placed =
      ::chmod(made.c_str(), 01777) == 0 &&
      ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, (parent / folder_name).c_str(), RENAME_NOREPLACE) == 0;
  if (!placed) ::rmdir(made.c_str());
}

Descriptor open_told(const char* path, bool make) {
  std::error_code error;
  if (make) fs::create_directories(path, error);
  Descriptor folder(open_folder(path));
  if (!folder && errno == ENOENT && !make) return folder;
  if (folder && (!make || ::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) == 0)) return folder;
  const std::string why = error ? error.message() : std::strerror(errno);
  throw Error(Exit::cannot_write, "memory",
              std::string("HEADROOM_RESERVATIONS=") + path + " cannot be used: " + why +
                  "; it must be a folder that this user may write to");
}

}  // namespace

std::optional<ReservationFolder> ReservationFolder::open(bool make) {
  const char* told = std::getenv("HEADROOM_RESERVATIONS");
  if (told == nullptr || *told == '\0') return open_in({"/tmp", "/dev/shm", "/var/tmp"}, make);
  Descriptor folder = open_told(told, make);
  return folder ? std::optional(ReservationFolder(std::move(folder))) : std::nullopt;
}

std::optional<ReservationFolder> ReservationFolder::open_in(const std::vector<std::string>& parents, bool make) {
  for (const fs::path parent : parents) {
    const fs::path path = parent / folder_name;
    // A link may be anybody's, and lead anywhere.
    Descriptor folder(open_folder(path, O_NOFOLLOW));
    if (!folder && errno == ENOENT && make) {
      make_shared_folder(parent);
      folder = Descriptor(open_folder(path, O_NOFOLLOW));
    }
    if (folder && shared_safely(folder.get())) return ReservationFolder(std::move(folder));
  }
  return std::nullopt;
}

bool ReservationFolder::lock() {
  // Two seconds in all. flock(2) has no time limit, and anybody may keep the lock.
  for (int i = 0; i < 400; ++i) {
    if (::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0) return locked_ = true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

Descriptor ReservationFolder::create(std::string& name) const {
  for (int i = 0; i < 20; ++i) {
    name = "run-" + own_suffix();
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    // Until it is locked, no other user may open it.
    Descriptor file(::openat(folder_.get(), name.c_str(), flags, 0600));
    if (!file && errno != EEXIST) return {};
    // Who reads the folder without its lock may take the file for a dead one's before it is locked, and remove it.
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && is_linked(file)) {
      ::fchmod(file.get(), 0644);  // whatever the umask: others must see it
      return file;
    }
    if (file) remove(name);
  }
  return {};
}

void ReservationFolder::remove(const std::string& name) const { ::unlinkat(folder_.get(), name.c_str(), 0); }

std::vector<LiveEntry> ReservationFolder::read_live() const {
  std::vector<LiveEntry> entries;
  // A descriptor of its own, because closedir() closes it.
  const int again = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(again < 0 ? nullptr : ::fdopendir(again),
                                                 [](DIR* open) { return ::closedir(open); });
  if (!list) return entries;
  int seen = 0;
  for (const dirent* entry = nullptr; seen < most_entries && (entry = ::readdir(list.get())) != nullptr; ++seen) {
    const std::string name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    if (auto live = read_if_live(name)) entries.push_back(*std::move(live));
  }
  return entries;
}

std::optional<LiveEntry> ReservationFolder::read_if_live(const std::string& name) const {
  // Never through a link, never waiting for the other end of a pipe.
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(::openat(folder_.get(), name.c_str(), flags));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) {  // nobody holds it
    if (locked_ && (status.st_uid == ::geteuid() || ::geteuid() == 0)) remove(name);
    return std::nullopt;
  }
  std::string text(longest_entry, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return std::nullopt;
  text.resize(static_cast<size_t>(got));
  return LiveEntry{name, std::move(text), status.st_uid};
}

bool is_linked(const Descriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}

bool write_entry(const Descriptor& file, std::string_view text) {
  // Cut to its length last, so that no reader in between finds it empty.
  const ssize_t wrote = ::pwrite(file.get(), text.data(), text.size(), 0);
  return wrote == static_cast<ssize_t>(text.size()) && ::ftruncate(file.get(), wrote) == 0;
}

}  // namespace headroom
