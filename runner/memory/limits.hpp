// How much memory this process may hold: every bound that is in force, and the limit that follows from them
// (docs/memory.md). Everything here is about U, what the process itself holds: RssAnon + RssShmem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// One bound, and how large U may become under it.
struct Room {
  std::string name;            // "cgroup /user.slice/job_7 (v2)", "system", "RLIMIT_DATA"
  std::string scope{};         // whom it bounds together: a cgroup's id, "machine"; empty: this process alone
  bool hard = true;            // false: memory.high, above which the kernel slows a cgroup down
  int64_t bound_bytes = 0;     // the cgroup's limit, the machine's memory, the rlimit
  int64_t used_bytes = 0;      // by everybody it bounds, without what the kernel drops on demand
  int64_t room_bytes = 0;      // bound - (used - U), never below 0 nor above the bound
  int64_t reserved_bytes = 0;  // by other runs under it, and not held yet: set_aside() in reservations.hpp tells
  int64_t claimed_bytes = 0;   // what those claim; more where claims are bounded
  int64_t margin_part = 10;    // "auto" leaves one part in so many: 2 where another bound is unknown

  // A cgroup's, beyond which the kernel kills at once.
  bool kills() const { return hard && !scope.empty() && scope != "machine"; }
  int64_t free_bytes() const;   // room - reserved; never below 0
  int64_t share_bytes() const;  // of the room, that one run may take
  int64_t auto_bytes() const;   // its share of the room - reserved, what "auto" gives under it; never below 0
  const char* auto_share() const { return margin_part == 2 ? "0.5" : "0.9"; }
};

struct Rooms {
  int64_t held_bytes = 0;                             // U
  int64_t swap_free_bytes = 0, swap_total_bytes = 0;  // shown, never counted
  std::vector<Room> rooms;                            // as found: cgroups (own first), system, this process's own
  std::vector<std::string> unset;                     // names of bounds that could be there and are not
  std::vector<std::string> unknown;                   // names of bounds that are there and cannot be read

  // nullptr: no bound can be read here. The first of equals.
  const Room* smallest() const;         // by what "auto" gives under it
  const Room* smallest_shared() const;  // the same, of those that bound others too: cgroups and the system
  const Room* smallest_bound() const;   // by bound, of the hard ones
};

// `root` replaces "/" in tests. [any]
Rooms read_rooms(const std::string& root = "/");

struct MemoryLimit {
  std::optional<int64_t> bytes;  // nullopt: off
  std::string rule;              // one line: what decided, with the figures
};

// `wanted` is memory.limit as config/ resolves it: "auto", "off", "80%", or bytes in digits. "auto" is 0.9 of the
// smallest room less what is reserved in it, half of it where a bound is unknown; a share is of the smallest hard
// bound. Both are off where no bound can be read. Bytes and shares are held to 0.9 of the room in a cgroup, where the
// kernel would end the run otherwise; for the rest they are taken at their word, and the rule says when they are above
// a bound or above the room there is. Error(bad_input) for anything else. [any]
MemoryLimit decide_limit(const std::string& wanted, const Rooms& rooms);

// The same, were nobody else here. [any]
MemoryLimit limit_if_alone(const std::string& wanted, Rooms rooms);

// What the stacks of so many threads take of the address space. [any]
int64_t stack_bytes(int threads);

// U of a process (0: this one) from its status file; nullopt when it is gone or may not be looked at. [any]
std::optional<int64_t> held_bytes_of(int64_t pid = 0, const std::string& root = "/");

}  // namespace headroom
