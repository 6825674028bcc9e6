#include "memory/limits.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <pthread.h>
#include <sys/resource.h>

#include "error.hpp"
#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"
#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "memory/slurm.hpp"
#include "memory/supervised.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> held_bytes_in(const std::string& status) {
  const auto anonymous = bytes_after(status, "RssAnon:");
  // The status file of a zombie has no such line.
  if (!anonymous) return std::nullopt;
  return *anonymous + bytes_after(status, "RssShmem:").value_or(0);
}

class Finder {
 public:
  explicit Finder(const std::string& root) : root_(root), proc_(fs::path(root) / "proc") {
    status_ = read_proc_file(proc_ / "self/status").value_or("");
    machine_ = read_proc_file(proc_ / "meminfo").value_or("");
    // 0 where it cannot be read: readers tell by that.
    if (const auto own = held_bytes_in(status_)) found_.held_bytes = *own + children_bytes();
    found_.swap_free_bytes = bytes_after(machine_, "SwapFree:").value_or(0);
    found_.swap_total_bytes = bytes_after(machine_, "SwapTotal:").value_or(0);
  }

  Rooms find() {
    // The order counts: of equal rooms the first decides.
    for (const MemoryCgroup& cgroup : memory_cgroups(root_, &found_.unknown)) add_cgroup(cgroup);
    add_slurm();
    add_system();
    // Where there is no limit it says "unlimited", which reads as no number.
    const std::string limits = read_proc_file(proc_ / "self/limits").value_or("");
    add_own("RLIMIT_DATA", data_limit(limits), "VmData:");
    add_own("RLIMIT_AS", number_after(limits, "Max address space"), "VmSize:");
    // A bound that cannot be read may be smaller than the others, so "auto" leaves more of those free.
    for (Room& room : found_.rooms) room.margin_part = found_.unknown.empty() ? 10 : 2;
    return std::move(found_);
  }

 private:
  void add(Room room) {
    // Counters lag behind each other, and what a process brought into a cgroup is not charged there.
    const int64_t others = std::max<int64_t>(room.used_bytes - found_.held_bytes, 0);
    room.room_bytes = std::max<int64_t>(room.bound_bytes - others, 0);
    found_.rooms.push_back(std::move(room));
  }

  void add_cgroup(const MemoryCgroup& cgroup) {
    Room room{.name = cgroup.name, .scope = cgroup.id, .used_bytes = cgroup.used_bytes};
    if (cgroup.limit_bytes) {
      room.bound_bytes = *cgroup.limit_bytes;
      add(room);
    } else {
      found_.unset.push_back(cgroup.name);
    }
    if (!cgroup.throttle_bytes) return;
    room.name += " memory.high";
    room.hard = false;
    room.bound_bytes = *cgroup.throttle_bytes;
    add(room);
  }

  // What the job's other processes hold is not known here; runs of Headroom among them have reservations in its scope,
  // which count whole.
  void add_slurm() {
    const auto slurm = slurm_memory();
    if (!slurm) return;
    add({.name = slurm->name,
         .scope = slurm->scope,
         .counts_others = false,
         .bound_bytes = slurm->bytes,
         .used_bytes = std::min(found_.held_bytes, slurm->bytes)});
  }

  void add_system() {
    const auto total = bytes_after(machine_, "MemTotal:"), available = bytes_after(machine_, "MemAvailable:");
    if (total && available) {
      const int64_t used = std::max<int64_t>(*total - *available, 0);
      add({.name = "system", .scope = "machine", .bound_bytes = *total, .used_bytes = used});
    }
    // With strict accounting the kernel refuses what it could not back.
    const bool strict = number_after(read_proc_file(proc_ / "sys/vm/overcommit_memory").value_or(""), "") == 2;
    const auto bound = bytes_after(machine_, "CommitLimit:"), committed = bytes_after(machine_, "Committed_AS:");
    if (strict && bound && committed) {
      add({.name = "system CommitLimit", .scope = "machine", .bound_bytes = *bound, .used_bytes = *committed});
    }
  }

  // The user's: the one in force may be what we began under.
  static std::optional<int64_t> data_limit(const std::string& limits) {
    const auto users = users_data_limit();
    if (!users) return number_after(limits, "Max data size");
    return *users == RLIM_INFINITY ? std::nullopt : std::optional(static_cast<int64_t>(*users));
  }

  // `counter` is the line of the status file with what the kernel compares with the rlimit: it counts mapped memory.
  void add_own(const char* name, std::optional<int64_t> bound, const char* counter) {
    if (bound) {
      add({.name = name, .bound_bytes = *bound, .used_bytes = bytes_after(status_, counter).value_or(0)});
    } else {
      found_.unset.push_back(name);
    }
  }

  std::string root_;
  fs::path proc_;
  std::string status_, machine_;
  Rooms found_;
};

template <class Value>
const Room* smallest_of(const std::vector<Room>& rooms, Value value, bool soft_too) {
  const Room* smallest = nullptr;
  for (const Room& room : rooms) {
    if ((room.hard || soft_too) && (smallest == nullptr || value(room) < value(*smallest))) smallest = &room;
  }
  return smallest;
}

// By what "auto" gives. memory.high is among them: above it the kernel slows the run down.
template <class Condition>
const Room* smallest_where(const std::vector<Room>& rooms, Condition condition) {
  const Room* smallest = nullptr;
  for (const Room& room : rooms) {
    if (condition(room) && (smallest == nullptr || room.auto_bytes() < smallest->auto_bytes())) smallest = &room;
  }
  return smallest;
}

std::string unknown_text(const Rooms& rooms) {
  std::string text;
  for (const std::string& name : rooms.unknown) text += "; the bound of " + name + " is unknown";
  return text;
}

// A warning for a limit that does not depend on the room.
std::string warning(int64_t bytes, const Rooms& rooms) {
  const Room* bound = rooms.smallest_bound();
  if (bound != nullptr && bytes > bound->bound_bytes) {
    return "; above the bound of " + bound->name + ", " + size_text(bound->bound_bytes);
  }
  const Room* room = smallest_of(
      rooms.rooms, [](const Room& r) { return r.free_bytes(); }, /*soft_too=*/true);
  if (room == nullptr || bytes <= room->free_bytes()) return "";
  return "; above the " + size_text(room->free_bytes()) + " that are free in " + room->name + " now";
}

// At least 1, because 0 means that there is no limit.
int64_t above_zero(int64_t bytes) { return std::max<int64_t>(bytes, 1); }

MemoryLimit automatic(const Rooms& rooms) {
  const Room* room = rooms.smallest();
  if (room == nullptr) return {std::nullopt, "off: no bound can be read here"};
  std::string rule =
      std::string(room->auto_share()) + " of the " + size_text(room->room_bytes) + " of room in " + room->name;
  if (room->reserved_bytes > 0) rule += ", less " + size_text(room->reserved_bytes) + " reserved by other runs";
  if (room->claimed_bytes > room->reserved_bytes) rule += ", who claim " + size_text(room->claimed_bytes);
  rule += unknown_text(rooms);
  return {above_zero(room->auto_bytes()), rule};
}

// An explicit limit may be above what its cgroup has: the kernel would kill the run there.
MemoryLimit held_to_cgroup(MemoryLimit limit, const Rooms& rooms) {
  const Room* room = nullptr;
  for (const Room& cgroup : rooms.rooms) {
    if (cgroup.kills() && (room == nullptr || cgroup.share_bytes() < room->share_bytes())) room = &cgroup;
  }
  if (room == nullptr || room->share_bytes() >= *limit.bytes) return limit;
  limit.bytes = above_zero(room->share_bytes());
  limit.rule += std::string("; held to ") + room->auto_share() + " of the " + size_text(room->room_bytes) +
                " of room in " + room->name;
  return limit;
}

MemoryLimit share_of_bound(double share, const std::string& text, const Rooms& rooms) {
  const Room* bound = rooms.smallest_bound();
  if (bound == nullptr) return {std::nullopt, "off: no bound can be read here"};
  const int64_t bytes = above_zero(static_cast<int64_t>(share * static_cast<double>(bound->bound_bytes)));
  return held_to_cgroup({bytes, text + " of " + size_text(bound->bound_bytes) + ", the bound of " + bound->name +
                                    warning(bytes, rooms) + unknown_text(rooms)},
                        rooms);
}

// The whole text must be the number: "8x" is an error.
template <class Number>
bool reads_as(const std::string& text, size_t length, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, number);
  return error == std::errc() && end == text.data() + length && number > 0;
}

}  // namespace

int64_t Room::free_bytes() const { return std::max<int64_t>(room_bytes - reserved_bytes, 0); }

int64_t Room::share_bytes() const { return room_bytes - room_bytes / margin_part; }

int64_t Room::auto_bytes() const { return std::max<int64_t>(share_bytes() - reserved_bytes, 0); }

const Room* Rooms::smallest() const {
  return smallest_where(rooms, [](const Room&) { return true; });
}

const Room* Rooms::smallest_shared() const {
  return smallest_where(rooms, [](const Room& room) { return !room.scope.empty(); });
}

const Room* Rooms::smallest_bound() const {
  return smallest_of(
      rooms, [](const Room& room) { return room.bound_bytes; }, /*soft_too=*/false);
}

Rooms read_rooms(const std::string& root) { return Finder(root).find(); }

MemoryLimit decide_limit(const std::string& wanted, const Rooms& rooms) {
  if (wanted == "off") return {std::nullopt, "off: nothing holds the run but the kernel's own bounds"};
  if (wanted == "auto") return automatic(rooms);
  double percent = 0;
  if (wanted.ends_with('%') && reads_as(wanted, wanted.size() - 1, percent) && percent <= 100)
    return share_of_bound(percent / 100, wanted, rooms);
  int64_t bytes = 0;
  if (reads_as(wanted, wanted.size(), bytes))
    return held_to_cgroup({bytes, "as told" + warning(bytes, rooms) + unknown_text(rooms)}, rooms);
  throw Error(Exit::bad_input, "memory",
              "memory.limit is \"" + wanted + "\"; it must be auto, off, a share such as 80% or a number of bytes");
}

MemoryLimit limit_if_alone(const std::string& wanted, Rooms rooms) {
  for (Room& room : rooms.rooms) {
    // What leaves less of an rlimit are this process's own mappings.
    if (!room.scope.empty()) room.room_bytes = room.bound_bytes;
    room.reserved_bytes = room.claimed_bytes = 0;
  }
  return decide_limit(wanted, rooms);
}

int64_t stack_bytes(int threads) {
  pthread_attr_t defaults;
  size_t bytes = 0;
  if (pthread_getattr_default_np(&defaults) != 0) return 0;
  pthread_attr_getstacksize(&defaults, &bytes);
  pthread_attr_destroy(&defaults);
  return static_cast<int64_t>(bytes) * threads;
}

std::optional<int64_t> held_bytes_of(int64_t pid, const std::string& root) {
  const std::string process = pid == 0 ? "self" : std::to_string(pid);
  return held_bytes_in(read_proc_file(fs::path(root) / "proc" / process / "status").value_or(""));
}

}  // namespace headroom
