#include "memory/start_queue.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "error.hpp"
#include "memory/readable.hpp"

namespace headroom {
namespace {

constexpr double first_pause = 0.2, longest_pause = 2, glance = 0.1, seconds_between_lines = 60;

// "2 other runs have reserved 5.0 GiB and hold 2.1 GiB of it (quick_demo, pid 71: 3.0 GiB; ...)"; empty without any.
std::string describe(const std::vector<OtherRun>& runs, bool waiting) {
  size_t number = 0;
  int64_t reserved = 0, held = 0;
  std::string names;
  for (const OtherRun& run : runs) {
    if (run.waits() != waiting) continue;
    // Others may claim any number. Of 4,096 runs, the most that are read, such a sum does not overflow.
    constexpr int64_t most = int64_t{1} << 50;
    reserved += std::min(run.reserved_bytes, most);
    held += std::min({run.held_bytes, run.reserved_bytes, most});
    if (++number > 3) continue;
    names +=
        (number > 1 ? "; " : "") + run.name + ", pid " + std::to_string(run.pid) + ": " + size_text(run.reserved_bytes);
  }
  if (number == 0) return "";
  if (number > 3) names += "; ...";
  const std::string figures = waiting
                                  ? " in front waiting for " + size_text(reserved)
                                  : " with " + size_text(reserved) + " reserved, " + size_text(held) + " of it held";
  return "; " + counted(number, waiting ? "run" : "other run") + figures + " (" + names + ")";
}

// "; they claim 4.0 EiB of system, of which 5.0 GiB count"; empty where all of it counts.
std::string bounded_claims(const Room* room) {
  if (room == nullptr || room->claimed_bytes <= room->reserved_bytes) return "";
  return "; they claim " + size_text(room->claimed_bytes) + " of " + room->name + ", of which " +
         size_text(room->reserved_bytes) + " count";
}

// One look at the machine and at the runs ahead.
class Outlook {
 public:
  // `patient`: it may wait for all it wants.
  Outlook(const MemoryRequest& request, const std::vector<OtherRun>& ahead, bool patient, const std::string& root)
      : request_(request), rooms_(read_rooms(root)) {
    least_bytes_ = std::max(request.needed_bytes, rooms_.held_bytes);
    wanted_bytes_ = std::max(request.wanted_bytes, least_bytes_);
    set_aside(rooms_, ahead);
    limit_ = decide_limit(request.limit, rooms_);
    // It does not wait for what could never fit.
    needed_bytes_ = patient && wanted_bytes_ <= most() ? wanted_bytes_ : least_bytes_;
    others_ =
        describe(ahead, /*waiting=*/false) + describe(ahead, /*waiting=*/true) + bounded_claims(rooms_.smallest());
  }

  const MemoryLimit& limit() const { return limit_; }
  bool fits() const { return !limit_.bytes || needed_bytes_ <= available(); }
  // Claiming more than is known to be needed would leave nothing to a run that starts at the same time.
  int64_t reservation() const { return std::clamp(available(), needed_bytes_, wanted_bytes_); }

  // The most this limit could ever give, without other processes.
  bool never_fits() const { return !fits() && needed_bytes_ > most(); }

  std::string waiting_line() const {
    return "waiting for memory: needs " + size_text(needed_bytes_) + ", " + size_text(available()) + " free" + others_;
  }

  [[noreturn]] void give_up() const {
    std::string sentence = "the run needs " + size_text(needed_bytes_) + ", and memory.limit gives it " +
                           size_text(*limit_.bytes) + " (" + limit_.rule + ")" + others_;
    if (!never_fits()) {
      sentence += request_.wait_seconds > 0 ? ": memory.wait is over: let it wait longer, free some memory"
                                            : ": let it wait with memory.wait = \"10 min\", free some memory";
      sentence += " or make the run smaller";
    } else if (request_.limit != "auto") {
      sentence += ": raise the limit or make the run smaller";
    } else {
      // Where only memory.high can be read there is no bound that is hard, but a room.
      const Room* bound = rooms_.smallest_bound() != nullptr ? rooms_.smallest_bound() : rooms_.smallest();
      sentence += std::string("; it will never fit ") + bound->auto_share() + " of the " +
                  size_text(bound->bound_bytes) + " of " + bound->name + ": raise that bound or make the run smaller";
    }
    throw Error(Exit::does_not_fit, "memory", sentence);
  }

 private:
  int64_t most() const { return limit_if_alone(request_.limit, rooms_).bytes.value_or(INT64_MAX); }
  int64_t available() const {
    int64_t bytes = limit_.bytes.value_or(INT64_MAX);
    // "auto" is within all rooms already. An explicit limit need not be free unless the run may wait for it.
    if (request_.limit == "auto" || request_.wait_seconds <= 0) return bytes;
    for (const Room& room : rooms_.rooms) bytes = std::min(bytes, room.free_bytes());
    return bytes;
  }

  const MemoryRequest& request_;
  Rooms rooms_;
  int64_t least_bytes_ = 0, wanted_bytes_ = 0;
  int64_t needed_bytes_ = 0;  // to start: one of the two
  MemoryLimit limit_;
  std::string others_;
};

class Queue {
 public:
  Queue(const MemoryRequest& request, const WaitClock& clock, const std::string& root)
      : request_(request),
        clock_(clock),
        root_(root),
        place_(Reservation::queue(request.name, std::max(request.needed_bytes, request.wanted_bytes))) {}

  std::optional<MemoryGrant> wait() {
    const double start = clock_.now_seconds();
    double next_line = start;
    for (double pause = first_pause;; pause = std::min(pause * 1.5, longest_pause)) {
      const double left = start + request_.wait_seconds - clock_.now_seconds();
      std::optional<Outlook> outlook;
      const bool granted = place_.take([&](const std::vector<OtherRun>& ahead) {
        outlook.emplace(request_, ahead, /*patient=*/left > 0, root_);
        return outlook->fits() ? std::optional(outlook->reservation()) : std::nullopt;
      });
      if (granted) return MemoryGrant{outlook->limit(), std::move(place_)};
      const double now = clock_.now_seconds();
      if (left <= 0 || outlook->never_fits()) outlook->give_up();
      if (now >= next_line && request_.say) {
        request_.say(outlook->waiting_line());
        next_line = now + seconds_between_lines;
      }
      if (!sleep(std::min(pause, left))) return std::nullopt;
    }
  }

 private:
  // False: cancelled.
  bool sleep(double seconds) const {
    for (double left = seconds; left > 0; left -= glance) {
      if (request_.cancelled && request_.cancelled()) return false;
      clock_.sleep_seconds(std::min(left, glance));
    }
    return true;
  }

  const MemoryRequest& request_;
  const WaitClock& clock_;
  const std::string& root_;
  Reservation place_;
};

}  // namespace

WaitClock WaitClock::of_machine() {
  using Seconds = std::chrono::duration<double>;
  return {[] { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); },
          [](double seconds) { std::this_thread::sleep_for(Seconds(seconds)); }};
}

std::optional<MemoryGrant> wait_for_memory(const MemoryRequest& request, const WaitClock& clock,
                                           const std::string& root) {
  return Queue(request, clock, root).wait();
}

int64_t clearly_more_than(int64_t bytes) { return bytes + std::max<int64_t>(bytes / 4, 64 << 20); }

bool wait_for_more_memory(MemoryRequest request, int64_t too_little_bytes, const WaitClock& clock,
                          const std::string& root) {
  request.limit = "auto";
  const int64_t most = limit_if_alone(request.limit, read_rooms(root)).bytes.value_or(0);
  // Half the way at most: something is always held by the system itself.
  const int64_t step = std::min(clearly_more_than(too_little_bytes) - too_little_bytes, (most - too_little_bytes) / 2);
  if (step < std::max<int64_t>(too_little_bytes / 40, 8 << 20)) return false;
  request.needed_bytes = too_little_bytes + step;
  request.wanted_bytes = 0;
  try {
    return wait_for_memory(request, clock, root).has_value();
  } catch (const Error& problem) {
    if (problem.exit_code() != Exit::does_not_fit) throw;
    return false;  // the time is over
  }
}

}  // namespace headroom
