#include "memory/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "memory/cores.hpp"
#include "memory/limits.hpp"
#include "memory/readable.hpp"
#include "memory/supervised.hpp"

namespace headroom {

namespace {

auto place_of(const BlackBoxReading& box) {
  return std::tie(box.pid, box.phase, box.step, box.epoch, box.micro_batch, box.plugin_call, box.call_changes);
}

// "": it may well be busy with something that the box does not show, such as conversions and probes.
std::string occupation(const BlackBoxReading& box) {
  if (!box.plugin_call.empty()) return "'" + box.plugin_call + "' has not returned";
  switch (box.phase) {
    case Phase::starting:
    case Phase::probing:
    case Phase::epoch_end:
    case Phase::finished:
      return "";
    case Phase::loading:
      return "it waits for a batch of the datasource";
    case Phase::checkpoint:
      return "it writes a checkpoint";
    default:
      return "it is in the phase '" + std::string(phase_name(box.phase)) + "'";
  }
}

}  // namespace

std::optional<std::string> StallWatch::look(const BlackBoxReading& box, Clock::time_point now) {
  if (!last_ || place_of(*last_) != place_of(box)) {
    last_ = box;
    looked_ = now;
    still_ = {};
    tell_at_ = after_;
    return std::nullopt;
  }
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now - std::exchange(looked_, now));
  still_ += std::min(since, after_ / 2);
  const std::string what = occupation(box);
  if (still_ < tell_at_ || what.empty()) return std::nullopt;
  tell_at_ = 2 * still_;
  return "no progress for " + std::to_string(still_.count() / 1000) + " s at step " + std::to_string(box.step) +
         " of epoch " + std::to_string(box.epoch) + ": " + what;
}

namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw Error(Exit::bug, "supervisor", std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int write_end() const { return ends_[1]; }
  // While this end is open, reading the other never comes to an end. Once the child has been started.
  void close_write_end() { close(std::exchange(ends_[1], -1)); }
  // Until the last writer closes.
  std::string read_all() {
    std::string text;
    std::array<char, 65536> block;
    for (;;) {
      const ssize_t got = read(ends_[0], block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return text;
      text.append(block.data(), static_cast<size_t>(got));
    }
  }
  // Only what is there already.
  std::string read_some() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    return read_all();
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// What a process takes of a cgroup beside its writable pages: page tables, kernel stacks, pages that were relocated and
// are read-only since.
constexpr int64_t kernel_bytes = 8 << 20;

constexpr int linker_failed = 127;

// The bound that leaves least to a child: a cgroup's, or one the user has set.
struct StartRoom {
  std::string bound;
  int64_t bytes = 0;  // 0: there is none
  bool own = false;   // an rlimit: every process has all of it
};

StartRoom start_room() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {};  // their shadow is address space beyond any bound
#endif
  StartRoom least;
  for (const Room& room : read_rooms().rooms) {
    const bool own = room.scope.empty();
    // Under memory.high and on the machine nothing is killed at a fixed number.
    if (!room.kills() && !own) continue;
    // At least 1, because 0 means that there is no bound.
    const int64_t bytes = std::max<int64_t>(room.bound_bytes - (own ? 0 : room.used_bytes + kernel_bytes), 1);
    if (least.bytes == 0 || bytes < least.bytes) least = {room.name, bytes, own};
  }
  return least;
}

[[noreturn]] void refuse_to_load(const std::filesystem::path& program, const StartRoom& room) {
  throw Error(Exit::does_not_fit, "memory",
              "the " + size_text(room.bytes) + " that " + room.bound + " leaves are too little for " +
                  program.filename().string() + " to load its libraries: raise its limit");
}

pid_t start(const std::filesystem::path& program, const std::vector<std::string>& arguments, const StartRoom& room,
            ChildOptions options) {
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // Between two parallel parts OpenMP's threads look for the next one, which is fast: waking a processor that sleeps
  // takes long, in a virtual machine above all. Where others want the cores they sleep at once.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr && !cores_are_free())
    options.environment.emplace_back("OMP_WAIT_POLICY=PASSIVE");
  options.environment.push_back(parent_variable + std::to_string(getpid()));
  // Where it is set already, a supervisor started us, and our own limit may be a lower one.
  if (!users_data_limit()) {
    rlimit own{};
    getrlimit(RLIMIT_DATA, &own);
    options.environment.push_back(data_limit_variable + std::to_string(own.rlim_cur));
  }
  options.data_limit_bytes = room.bytes;
  try {
    return start_child(std::move(words), options);
  } catch (const std::system_error& problem) {
    if (room.bytes > 0 && problem.code() == std::errc::not_enough_memory) refuse_to_load(program, room);
    throw Error(Exit::bug, "supervisor",
                "cannot start " + program.string() + ": " + problem.code().message() + ": build Headroom again");
  }
}

// The child tells it behind begun_mark. Empty: not yet.
std::filesystem::path run_folder_in(const std::string& text) { return text.substr(std::min<size_t>(text.size(), 1)); }

// A box of another process is of an earlier life of the run.
void open_box_of(pid_t child, const std::filesystem::path& run_folder, std::optional<BlackBoxView>& box) {
  if (auto found = BlackBoxView::open(run_folder / black_box_file); found && found->head().pid == child)
    box.emplace(std::move(*found));
}

// Until `child` has ended, which is not reaped. Returns the signal that ended it, 0 for none. `text` is what it has
// told.
int watch_until_end(pid_t child, SignalRelay& signals, Pipe& told, std::string& text, const StallReport& stall) {
  StallWatch stall_watch(stall.after);
  std::optional<BlackBoxView> box;
  const int pause_ms = stall.tell ? static_cast<int>(stall.after.count() / 4 + 1) : -1;
  for (;;) {
    if (const auto signal = ended_by(child)) return *signal;
    // SIGCHLD comes through the same file, so the end of the child wakes this too.
    pollfd ready{.fd = signals.file(), .events = POLLIN, .revents = 0};
    poll(&ready, 1, pause_ms);
    signals.forward(child, SIGTERM);
    if (!stall.tell) continue;
    if (!box) {
      text += told.read_some();
      const std::filesystem::path run_folder = run_folder_in(text);
      if (!run_folder.empty()) open_box_of(child, run_folder, box);
    }
    if (!box) continue;
    if (const auto clause = stall_watch.look(box->head(), Clock::now())) stall.tell(*clause);
  }
}

}  // namespace

int Ended::exit_code() const {
  switch (end.signal()) {
    case 0:
      return end.exit_code();
    case SIGINT:
      return static_cast<int>(Exit::interrupted);
    case SIGTERM:
    case SIGUSR1:
      return static_cast<int>(Exit::resumable);
    case SIGKILL:
      return static_cast<int>(Exit::killed);
    default:
      return static_cast<int>(Exit::bug);
  }
}

Ended supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                const StallReport& stall) {
  // First: a signal that comes while the child starts must wait for it instead of ending this process.
  SignalRelay signals({SIGTERM, SIGINT, SIGUSR1, SIGHUP});
  Pipe told;
  OomKills kills;
  const auto place = kills.place_of(0);
  const auto started = Clock::now();
  const StartRoom room = start_room();
  const pid_t child =
      start(program, arguments, room,
            {.environment = {supervisor_variable + std::to_string(told.write_end())}, .kept_file = told.write_end()});
  told.close_write_end();
  std::string text;
  const int signal = watch_until_end(child, signals, told, text, stall);
  Ended ended;
  ended.pid = child;
  ended.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  // Before it is reaped: until then no other process can have its id.
  if (signal == SIGKILL) ended.oom_kill = kills.claim(child, place);
  ended.end = wait_for(child);
  ended.last_forwarded = signals.last();
  text += told.read_some();
  // The dynamic linker says 127; what a library does before main() and without memory ends in ways of its own.
  const bool began = !text.empty();
  const bool stumbled =
      signal == 0 ? ended.end.exit_code() != 0 : signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS;
  const bool was_full = room.own || ended.end.peak_resident_bytes >= room.bytes / 2;  // address space is not resident
  const bool refused = ended.end.exit_code() == linker_failed || (stumbled && was_full);
  if (!began && room.bytes > 0 && refused) refuse_to_load(program, room);
  ended.run_folder = run_folder_in(text);
  return ended;
}

std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments, Ended& ended) {
  // Whoever started us may ignore it, and then children leave no status: wait(2).
  std::signal(SIGCHLD, SIG_DFL);
  Pipe output;
  const StartRoom room = start_room();
  const pid_t child = start(program, arguments, room, {.stdout_file = output.write_end()});
  output.close_write_end();
  std::string text = output.read_all();
  ended.pid = child;
  ended.end = wait_for(child);
  if (room.bytes > 0 && ended.end.exit_code() == linker_failed) refuse_to_load(program, room);
  return text;
}

std::string how_it_ended(const ChildEnd& end, const std::optional<OomKill>& oom_kill) {
  const int signal = end.signal();
  if (signal == 0) return "ended with exit code " + std::to_string(end.exit_code());
  const std::string name = signal_name(signal) + " (" + strsignal(signal) + ")";
  switch (signal) {
    case SIGKILL: {
      if (!oom_kill) return "was killed with SIGKILL, not by the kernel for lack of memory";
      std::string text =
          std::string(oom_kill->certain ? "was" : "was probably") + " killed by the kernel's OOM killer: ";
      text += oom_kill->cgroup.empty()
                  ? "the machine's memory ran out"
                  : "cgroup " + oom_kill->cgroup.string() + " was at its limit of " + size_text(oom_kill->limit_bytes);
      return text;
    }
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
      return "crashed with " + name + (end.core_dumped() ? ", core dumped" : "");
    default:
      return "was ended by " + name;
  }
}

}  // namespace headroom
