// How much memory this process may hold: the bounds in force (cgroups, Slurm, machine, rlimits), and the limit that
// memory.limit makes of them (docs/memory.md). All of it is about U, RssAnon + RssShmem of this process and its
// children.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// One bound, and how large U may become under it.
struct Room {
  std::string name;            // "cgroup /user.slice/job_7 (v2)", "system", "RLIMIT_DATA"
  std::string scope{};         // which processes share it: a cgroup's id, a Slurm job, "machine"; empty: this one alone
  bool hard = true;            // false: memory.high, above which the kernel slows a cgroup down
  bool counts_others = true;   // used_bytes has what other processes hold; false: it is not known
  int64_t bound_bytes = 0;     // the cgroup's limit, the machine's memory, the rlimit
  int64_t used_bytes = 0;      // by all processes that share it, without what the kernel drops on demand
  int64_t room_bytes = 0;      // bound - (used - U), never below 0 nor above the bound
  int64_t reserved_bytes = 0;  // reserved by other runs, not in used_bytes; set_aside() (reservations.hpp) fills it in
  int64_t claimed_bytes = 0;   // what those runs claim, before claims are cut
  int64_t margin_part = 10;    // "auto" leaves one part in this many free: 2 where another bound is unknown

  // A cgroup's hard limit, or a Slurm job's: above it the run is killed at once.
  bool kills() const { return hard && !scope.empty() && scope != "machine"; }
  int64_t free_bytes() const;   // room - reserved; never below 0
  int64_t share_bytes() const;  // the part of the room that one run may take: 0.9, or 0.5
  int64_t auto_bytes() const;   // share - reserved, which is what "auto" gives; never below 0
  const char* auto_share() const { return margin_part == 2 ? "0.5" : "0.9"; }
};

struct Rooms {
  int64_t held_bytes = 0;                             // U
  int64_t swap_free_bytes = 0, swap_total_bytes = 0;  // only shown
  std::vector<Room> rooms;           // cgroups (own first, then its ancestors), Slurm, machine, rlimits
  std::vector<std::string> unset;    // names of bounds that are not set
  std::vector<std::string> unknown;  // names of bounds that are set and cannot be read

  // Of equals the first. nullptr: no bound can be read. The result points into `rooms`.
  const Room* smallest() const;         // by auto_bytes()
  const Room* smallest_shared() const;  // the same, among cgroups and the machine
  const Room* smallest_bound() const;   // by bound_bytes, among the hard ones
};

// Reads /proc and the cgroup files; some 0.1 ms and more. What cannot be read is left out, or is `unknown`. `root`
// replaces "/" in tests. [any]
Rooms read_rooms(const std::string& root = "/");

struct MemoryLimit {
  std::optional<int64_t> bytes;  // nullopt: off; at least 1
  std::string rule;              // one line: what decided, with the figures
};

// `wanted` is memory.limit as config/ resolves it: "auto", "off", "80%", or bytes in digits.
//   "auto": 0.9 of the smallest room less what is reserved there; 0.5 where a bound is unknown
//   "80%":  of the smallest hard bound
// Both are off where no bound can be read. Bytes and shares are cut to 0.9 of a cgroup's room, because the kernel would
// kill the run above it. Otherwise they are kept as given, and the rule says when they are above a bound or above the
// room. Error(bad_input) for any other text. [any]
MemoryLimit decide_limit(const std::string& wanted, const Rooms& rooms);

// The limit that `wanted` would give if nothing else used memory here. [any]
MemoryLimit limit_if_alone(const std::string& wanted, Rooms rooms);

// Address space that the stacks of this many threads take. [any]
int64_t stack_bytes(int threads);

// U of a process (0: this one) in bytes, from its status file. nullopt: it is gone, or its file may not be read. [any]
std::optional<int64_t> held_bytes_of(int64_t pid = 0, const std::string& root = "/");

}  // namespace headroom
