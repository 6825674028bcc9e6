// Runs on one machine see each other, so that two of them do not plan for the same memory. Every run has a small file
// in a folder that the machine's users share (reservation_folder.hpp). The file is locked while its process lives, so
// the reservation of a killed run ends with it. Reservations are advice: nothing enforces them. Those of this user are
// believed; those of others are checked against the kernel, and what they claim is bounded. Runs that do not see the
// same /tmp (containers) do not see each other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "memory/limits.hpp"
#include "memory/reservation_folder.hpp"

namespace headroom {

struct OtherRun {
  std::string name{};  // printable ASCII
  int64_t pid = 0;     // in its own pid namespace
  int64_t reserved_bytes = 0;
  int64_t held_bytes = 0;             // its U, read now; where its process cannot be read, the U in its file
  int64_t waiting_since_ns = 0;       // on the machine's boot clock; 0: it is running
  std::vector<std::string> scopes{};  // ids of the cgroups it is in, and of its Slurm job
  bool is_trusted = true;             // a process of this user and this pid namespace

  bool waits() const { return waiting_since_ns > 0; }
  int64_t outstanding_bytes() const;  // reserved and not held yet
};

// All other live runs: those that wait, longest first, then those that run. An entry of another user counts only if its
// process belongs to that user, or lies in another pid namespace, where this cannot be checked. Empty where there is no
// folder. Error(cannot_write) when $HEADROOM_RESERVATIONS cannot be used. [any]
std::vector<OtherRun> other_runs();

// Fills in Room::reserved_bytes and claimed_bytes. A run counts in the rooms that it shares with this one: always in
// the machine's. In each room trusted runs together get at most its bound, all others together at most half of its
// room.
void set_aside(Rooms& rooms, const std::vector<OtherRun>& others);

// Room::room_bytes as it will be once these runs have ended and given back what they hold: never above the bound.
void set_free(Rooms& rooms, const std::vector<OtherRun>& others);

// Outstanding bytes of all other runs together, in whatever cgroup. Errors as other_runs(). [any]
int64_t reserved_by_others();

// This process's own entry: at most one at a time. Removed when the object ends, but not by a child made with fork().
// Without a usable folder it works for this run alone, and no other run sees it. [control] unless a comment says
// otherwise.
class Reservation {
 public:
  Reservation() = default;  // reserves nothing

  // Reserves `bytes` of U at once.
  static Reservation claim(const std::string& name, int64_t bytes);

  // A place in the queue, before take(). Runs that come later count `wanted_bytes` as reserved.
  static Reservation queue(const std::string& name, int64_t wanted_bytes);

  // Calls `decide` with the folder locked, so that no other run decides at the same time. It gets the runs that come
  // first, those running and those that have waited longer, and returns the bytes to reserve, or nullopt to go on
  // waiting. True when it returned a number: that is reserved now.
  using Decide = std::function<std::optional<int64_t>(const std::vector<OtherRun>& ahead)>;
  bool take(const Decide& decide);

  // Writes another number, and the current U. Call it now and then with the same number too: it refreshes U for runs
  // that cannot read this process, and makes the file again where /tmp was cleaned. [any], one thread at a time.
  void update(int64_t reserved_bytes);

  int64_t reserved_bytes() const { return entry_.reserved_bytes; }
  bool shared() const { return static_cast<bool>(file_); }  // others can see it

  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

 private:
  void write(const ReservationFolder& folder);

  OtherRun entry_;  // as the others see it
  Descriptor file_;
  std::string file_name_;
};

}  // namespace headroom
