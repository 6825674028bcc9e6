// Runs on one machine see each other: every run has a small file in a folder that the machine's users share, locked
// while its process lives. A killed run's reservation is gone with it. What is written there is a courtesy between
// runs: this user's own are taken at their word; those of others must be confirmed by the kernel, and what they claim
// is bounded. Runs that do not see the same /tmp do not see each other.
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
  int64_t held_bytes = 0;             // its U, as read now; as it last wrote it where its process cannot be looked at
  int64_t waiting_since_ns = 0;       // on the machine's boot clock; 0: it is running
  std::vector<std::string> scopes{};  // ids of the cgroups it is in
  bool is_trusted = true;             // a process of this user and this pid namespace

  bool waits() const { return waiting_since_ns > 0; }
  int64_t outstanding_bytes() const;  // reserved and not held yet
};

// Every other live run, those waiting included: the ones that wait longest first, then those running. An entry of
// another user counts only where its process is one of that user's, or of another pid namespace, where nobody can tell.
// Empty where there is no folder. Error(cannot_write) when $HEADROOM_RESERVATIONS cannot be used. [any]
std::vector<OtherRun> other_runs();

// Fills in Room::reserved_bytes and claimed_bytes: a run counts in the rooms it shares, the system's always. Trusted
// runs set aside at most the bound of a room, all others together at most half of what there is in it.
void set_aside(Rooms& rooms, const std::vector<OtherRun>& others);

// Outstanding bytes of all others together, wherever they run. [any]
int64_t reserved_by_others();

// This process's own entry: at most one at a time. Released when the object ends; after a fork only by the process that
// made it. Without a folder it works alone, and nobody sees it. [control], except as told.
class Reservation {
 public:
  Reservation() = default;  // reserves nothing

  // Reserves `bytes` of U at once.
  static Reservation claim(const std::string& name, int64_t bytes);

  // A place in the queue, for what take() will ask for. Others that come later set `wanted_bytes` aside.
  static Reservation queue(const std::string& name, int64_t wanted_bytes);

  // Asks `decide`, alone among all runs of the machine, what to reserve. It is given the runs to respect: those running
  // and those that have waited longer. True when it named a figure: that is reserved now.
  using Decide = std::function<std::optional<int64_t>(const std::vector<OtherRun>& ahead)>;
  bool take(const Decide& decide);

  // Another figure, and the U of now. Once in a while also with the same figure: for runs that cannot look at this
  // process, and to make the entry anew where it was cleaned away. [any], by one thread at a time.
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
