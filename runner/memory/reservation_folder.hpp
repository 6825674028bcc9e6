// The folder of the reservations' files. All users of the machine share it: everybody may write there, so nothing in it
// is trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "memory/descriptor.hpp"

namespace headroom {

// The file of a live process.
struct LiveEntry {
  std::string name;  // of its file
  std::string text;
  uid_t owner = 0;  // of its file, according to the kernel
};

// Open it again for every use: an administrator may clear /tmp in between. Only files named run-* are touched.
class ReservationFolder {
 public:
  // The folder $HEADROOM_RESERVATIONS, or where that is not set open_in() of /tmp, /dev/shm and /var/tmp. `make`:
  // create it where it is missing. nullopt: there is none. Error(cannot_write): $HEADROOM_RESERVATIONS is set and
  // cannot be used.
  static std::optional<ReservationFolder> open(bool make);

  // The first PARENT/headroom-reservations that is safe to share: sticky, writable for all, not a link. nullopt: none
  // is.
  static std::optional<ReservationFolder> open_in(const std::vector<std::string>& parents, bool make);

  // Locks the folder for all runs until this object ends. False after two seconds: another process keeps the lock.
  bool lock();

  // Makes a new file and locks it; the kernel drops the lock when the process ends, however it ends. `name` receives
  // its name. Empty: no file can be made.
  Descriptor create(std::string& name) const;
  void remove(const std::string& name) const;

  // The entries of live processes, at most 4,096. While the folder is locked it also removes this user's files of dead
  // processes.
  std::vector<LiveEntry> read_live() const;

 private:
  explicit ReservationFolder(Descriptor folder) : folder_(std::move(folder)) {}
  std::optional<LiveEntry> read_if_live(const std::string& name) const;

  Descriptor folder_;
  bool locked_ = false;
};

// Whether the file still has a name, in any folder: false once somebody removed it.
bool is_linked(const Descriptor& file);

// Replaces the content of the file. False: the disk is full.
bool write_entry(const Descriptor& file, std::string_view text);

}  // namespace headroom
