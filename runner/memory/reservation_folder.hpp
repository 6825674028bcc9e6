// The folder where the runs of one machine meet, shared by its users: everybody may write there, nobody is trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "memory/descriptor.hpp"

namespace headroom {

// What a live process wrote.
struct LiveEntry {
  std::string name;  // of its file
  std::string text;
  uid_t owner = 0;  // of its file: who wrote it, as the kernel knows
};

// Opened anew for every use, because an administrator may clear /tmp meanwhile. The names of entries are those of run
// files; everything else in the folder is left alone.
class ReservationFolder {
 public:
  // $HEADROOM_RESERVATIONS; where that is not set, open_in() of /tmp, /dev/shm and /var/tmp. `make` makes it where it
  // is missing. nullopt: there is none. Error(cannot_write) when $HEADROOM_RESERVATIONS is set and cannot be used.
  static std::optional<ReservationFolder> open(bool make);

  // The first of PARENT/headroom-reservations that is what a shared folder must be: sticky, writable for all, no link.
  static std::optional<ReservationFolder> open_in(const std::vector<std::string>& parents, bool make);

  // Alone in the folder until this object ends. False after two seconds: somebody holds it and does not let go.
  bool lock();

  // A new file, locked for as long as it is open: the lock ends with the process, however that ends. Empty when none
  // can be made. `name` receives its name.
  Descriptor create(std::string& name) const;
  void remove(const std::string& name) const;

  // With the folder locked, this user's files of dead processes are removed.
  std::vector<LiveEntry> read_live() const;

 private:
  explicit ReservationFolder(Descriptor folder) : folder_(std::move(folder)) {}
  std::optional<LiveEntry> read_if_live(const std::string& name) const;

  Descriptor folder_;
  bool locked_ = false;
};

// Whether the file still has a name, in whatever folder.
bool is_linked(const Descriptor& file);

// Replaces what is in the file. False: the disk is full.
bool write_entry(const Descriptor& file, std::string_view text);

}  // namespace headroom
