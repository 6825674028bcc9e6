#include "memory/reservations.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.hpp"
#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"
#include "memory/slurm.hpp"

namespace headroom {
namespace {

constexpr std::string_view format_line = "headroom-reservation 1\n";

// Other runs' pids mean something only where they are counted as ours are.
int64_t pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? static_cast<int64_t>(status.st_ino) : 0;
}

// All processes of the machine share it, and nobody sets it: they agree on who has waited longest.
int64_t boot_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// For terminals and JSON: whoever wrote the name may have written anything.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
  return text.substr(0, 100);
}

std::string entry_text(const OtherRun& run) {
  std::ostringstream text;
  text << format_line << "pid " << run.pid << "\nnamespace " << pid_namespace() << "\nreserved " << run.reserved_bytes
       << "\nheld " << run.held_bytes << "\nwaiting " << run.waiting_since_ns << "\nname " << printable(run.name)
       << "\n";
  for (const std::string& scope : run.scopes) text << "scope " << scope << "\n";
  return text.str();
}

// As whom a process writes files; nullopt where this process may not look at it. The owner of /proc/PID would be root's
// for one that has changed its user.
std::optional<uid_t> user_of(int64_t pid) {
  const std::string status = read_proc_file("/proc/" + std::to_string(pid) + "/status").value_or("");
  const size_t line = status.find("\nUid:");
  unsigned user = 0;
  if (line == std::string::npos || std::sscanf(status.c_str() + line, "\nUid: %*u %*u %*u %u", &user) != 1)
    return std::nullopt;
  return user;
}

// nullopt for a process that is gone or another user's than its file, and for an entry that is not one.
std::optional<OtherRun> run_from(const LiveEntry& entry) {
  const std::string& text = entry.text;
  const auto pid = number_after(text, "pid"), space = number_after(text, "namespace");
  const auto reserved = number_after(text, "reserved"), held = number_after(text, "held");
  const auto since = number_after(text, "waiting");
  if (!text.starts_with(format_line) || !pid || !space || !reserved || !held || !since) return std::nullopt;
  if (*pid <= 0 || *pid > INT32_MAX || *reserved < 0 || *held < 0 || *since < 0) return std::nullopt;

  OtherRun run{.pid = *pid, .reserved_bytes = *reserved, .held_bytes = *held, .waiting_since_ns = *since};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("name ")) run.name = printable(line.substr(5));
    if (line.starts_with("scope ")) run.scopes.push_back(line.substr(6));
  }
  run.is_trusted = *space == pid_namespace() && entry.owner == ::geteuid();
  // What follows asks the kernel about the process id, which means another process here.
  if (*space != pid_namespace()) return run;
  // Its child, made by fork, may still hold the lock.
  if (*pid == ::getpid() || (::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)) return std::nullopt;
  if (!run.is_trusted && user_of(*pid) != entry.owner) return std::nullopt;
  run.held_bytes = held_bytes_of(*pid).value_or(*held);
  return run;
}

std::vector<OtherRun> runs_in(const ReservationFolder& folder) {
  std::vector<OtherRun> runs;
  for (const LiveEntry& entry : folder.read_live()) {
    if (auto run = run_from(entry)) runs.push_back(*std::move(run));
  }
  std::ranges::sort(runs, {},
                    [](const OtherRun& run) { return std::pair(run.waiting_since_ns == 0, run.waiting_since_ns); });
  return runs;
}

// Those that run come before those that wait. Of two that began to wait at once the smaller process id comes first.
bool is_ahead(const OtherRun& other, const OtherRun& own) {
  if (!other.waits() || !own.waits()) return !other.waits();
  return std::pair(other.waiting_since_ns, other.pid) < std::pair(own.waiting_since_ns, own.pid);
}

// For what must go on without a folder.
std::optional<ReservationFolder> folder_if_usable(bool make) {
  try {
    return ReservationFolder::open(make);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What others claim is theirs to invent: sums end at the largest number instead of beyond it.
int64_t sum(int64_t a, int64_t b) {
  int64_t total = 0;
  return __builtin_add_overflow(a, b, &total) ? INT64_MAX : total;
}

bool shares(const Room& room, const OtherRun& run) {
  return room.scope == "machine" || std::ranges::find(run.scopes, room.scope) != run.scopes.end();
}

}  // namespace

int64_t OtherRun::outstanding_bytes() const { return std::max<int64_t>(reserved_bytes - held_bytes, 0); }

std::vector<OtherRun> other_runs() {
  auto folder = ReservationFolder::open(/*make=*/false);
  if (!folder) return {};
  // If another process holds the lock, the runs are read without it.
  folder->lock();
  return runs_in(*folder);
}

void set_aside(Rooms& rooms, const std::vector<OtherRun>& others) {
  for (Room& room : rooms.rooms) {
    int64_t trusted = 0, untrusted = 0;
    for (const OtherRun& run : others) {
      if (!shares(room, run)) continue;
      int64_t& total = run.is_trusted ? trusted : untrusted;
      total = sum(total, room.counts_others ? run.outstanding_bytes() : std::max(run.reserved_bytes, run.held_bytes));
    }
    room.claimed_bytes = sum(trusted, untrusted);
    room.reserved_bytes = sum(std::min(trusted, room.bound_bytes), std::min(untrusted, room.room_bytes / 2));
  }
}

void set_free(Rooms& rooms, const std::vector<OtherRun>& others) {
  for (Room& room : rooms.rooms) {
    for (const OtherRun& run : others) {
      if (shares(room, run)) room.room_bytes = std::min(sum(room.room_bytes, run.held_bytes), room.bound_bytes);
    }
  }
}

int64_t reserved_by_others() {
  int64_t total = 0;
  for (const OtherRun& run : other_runs()) total = sum(total, run.outstanding_bytes());
  return total;
}

Reservation Reservation::claim(const std::string& name, int64_t bytes) {
  Reservation claimed = queue(name, bytes);
  claimed.take([bytes](const auto&) { return std::optional(bytes); });
  return claimed;
}

Reservation Reservation::queue(const std::string& name, int64_t wanted_bytes) {
  Reservation place;
  place.entry_ = {.name = name, .pid = ::getpid(), .reserved_bytes = wanted_bytes};
  place.entry_.waiting_since_ns = boot_clock_ns();
  for (const MemoryCgroup& cgroup : memory_cgroups()) place.entry_.scopes.push_back(cgroup.id);
  if (const auto slurm = slurm_memory()) place.entry_.scopes.push_back(slurm->scope);
  if (auto folder = ReservationFolder::open(/*make=*/true)) {
    folder->lock();
    place.write(*folder);
  }
  return place;
}

bool Reservation::take(const Decide& decide) {
  auto folder = folder_if_usable(/*make=*/true);
  std::vector<OtherRun> ahead;
  if (folder) {
    folder->lock();
    ahead = runs_in(*folder);
    std::erase_if(ahead, [this](const OtherRun& run) { return !is_ahead(run, entry_); });
  }
  // Without a folder no run is ahead.
  const auto bytes = decide(ahead);
  if (bytes) {
    entry_.reserved_bytes = *bytes;
    entry_.waiting_since_ns = 0;
  }
  if (folder) write(*folder);
  return bytes.has_value();
}

void Reservation::update(int64_t reserved_bytes) {
  // A child made with fork() has a copy, and the entry stays its parent's.
  if (entry_.pid != ::getpid()) return;
  entry_.reserved_bytes = reserved_bytes;
  auto folder = folder_if_usable(/*make=*/true);
  if (folder && folder->lock()) write(*folder);
}

void Reservation::write(const ReservationFolder& folder) {
  entry_.held_bytes = held_bytes_of().value_or(0);
  if (!file_ || !is_linked(file_)) file_ = folder.create(file_name_);
  // Where the disk is full no entry is better than one with old figures.
  if (!file_ || write_entry(file_, entry_text(entry_))) return;
  folder.remove(file_name_);
  file_ = {};
}

Reservation::Reservation(Reservation&& other) noexcept { *this = std::move(other); }

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(entry_, other.entry_);
  std::swap(file_, other.file_);
  std::swap(file_name_, other.file_name_);
  return *this;
}

Reservation::~Reservation() {
  if (!file_ || entry_.pid != ::getpid()) return;
  if (const auto folder = folder_if_usable(/*make=*/false)) folder->remove(file_name_);
}

}  // namespace headroom
