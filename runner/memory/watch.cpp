#include "memory/watch.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/cgroups.hpp"
#include "memory/proc_file.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

// "some avg10=1.23 avg60=...": pressure stall information (PSI), in percent of the last ten seconds.
double percent_after(const std::string& text, const std::string& line) {
  const size_t at = text.find(line + " avg10=");
  return at == std::string::npos ? 0.0 : std::atof(text.c_str() + at + line.size() + 7);
}

class Watch {
 public:
  Watch(const std::vector<std::string>& command, const WatchOptions& options) : options_(options), tree_(getpid()) {
    report_.command = command;
    report_.started_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
  }

  WatchReport run() {
    // Orphans become our children instead of leaving the tree.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    SignalRelay signals({SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2});
    kills_.place_of(0);  // where the command begins
    started_ = told_ = Clock::now();
    child_ = start_child(report_.command, {.search_path = true, .signal_mask = &signals.mask_before()});
    report_.pid = child_;
    for (next_look_ = started_; !report_.end;) {
      wait_for_news(signals);
      signals.forward(child_);
      take_deaths();
      if (!report_.end && Clock::now() >= next_look_) look();
    }
    report_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    report_.last_forwarded = signals.last();
    // Who ended together with the command is not left running.
    tree_.take_deaths();
    tree_.look();
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    report_.left_running = static_cast<int64_t>(tree_.processes().size());
    return std::move(report_);
  }

 private:
  int64_t now_ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_).count();
  }

  // A signal, the end of a process, or the time for a look.
  void wait_for_news(const SignalRelay& signals) {
    std::vector<pollfd> files = {{.fd = signals.file(), .events = POLLIN, .revents = 0}};
    for (const WatchedProcess& process : tree_.processes()) {
      if (process.file >= 0) files.push_back({.fd = process.file, .events = POLLIN, .revents = 0});
    }
    // Rounded up: a poll() that ends too early would be repeated in vain.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look_ - Clock::now()).count();
    // poll() takes milliseconds as an int: an hour at most.
    poll(files.data(), files.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000)));
  }

  void look() {
    kills_.settle();
    tree_.look();
    const auto processes = tree_.processes();
    std::map<int64_t, std::optional<OomKills::Place>> places;
    for (const WatchedProcess& process : processes)
      places[process.pid] = kills_.place_of(process.pid, places_[process.pid]);
    places_ = std::move(places);
    report_.timeline.add(now_ms(), processes, surroundings(processes));
    // In the first seconds a tenth of the time passed: short programs are seen too.
    constexpr double shortest_seconds = 0.02;
    const double passed = std::chrono::duration<double>(Clock::now() - started_).count();
    const double pause = std::min(options_.interval_seconds, std::max(shortest_seconds, passed / 10));
    next_look_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause));
    if (options_.tell && Clock::now() - told_ >= std::chrono::duration<double>(options_.telling_seconds)) {
      report_.seconds = passed;
      options_.tell(report_);
      told_ = Clock::now();
    }
  }

  // The nearest limit above the process that holds most: it may have been moved into a cgroup of its own.
  WatchBound bound_of(const std::vector<WatchedProcess>& processes, int64_t machine_bytes) {
    WatchBound bound{.cgroup = {}, .limit_bytes = machine_bytes};
    const auto largest = std::max_element(processes.begin(), processes.end(),
                                          [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const auto place = largest == processes.end() ? std::nullopt : places_[largest->pid];
    if (!place) return bound;
    for (const MemoryCgroup& cgroup : read_memory_cgroups(kills_.folders_of(*place))) {
      if (cgroup.limit_bytes && *cgroup.limit_bytes < bound.limit_bytes)
        bound = {.cgroup = cgroup.folder, .limit_bytes = *cgroup.limit_bytes};
    }
    return bound;
  }

  MemoryAround surroundings(const std::vector<WatchedProcess>& processes) {
    const std::string system = read_proc_file("/proc/meminfo").value_or("");
    const int64_t machine_bytes = number_after(system, "MemTotal:").value_or(0) * 1024;
    int64_t total_bytes = 0, shared_bytes = 0;
    for (const WatchedProcess& process : processes) {
      total_bytes += process.bytes;
      shared_bytes += process.shared_bytes;
    }
    // At the peak, where it matters: afterwards the process that it bounded may be gone.
    if (total_bytes >= report_.timeline.peak_bytes()) {
      const WatchBound bound = bound_of(processes, machine_bytes);
      if (bound.cgroup != report_.bound.cgroup) report_.timeline.forget_use();
      report_.bound = bound;
    }
    MemoryCgroup bounding;  // or the machine, told in the same words
    if (report_.bound.cgroup.empty()) {
      bounding.used_bytes = machine_bytes - bytes_after(system, "MemAvailable:").value_or(0);
      bounding.anonymous_bytes = bytes_after(system, "AnonPages:").value_or(0);
      bounding.shared_bytes = bytes_after(system, "Shmem:").value_or(0);
    } else if (auto cgroups = read_memory_cgroups({report_.bound.cgroup}); !cgroups.empty()) {
      bounding = std::move(cgroups.front());
    }
    // Shared memory is no anonymous memory, so it is taken out of what the program holds.
    MemoryAround around{
        .used_bytes = bounding.used_bytes,
        .others_bytes = std::max<int64_t>(bounding.anonymous_bytes - (total_bytes - shared_bytes), 0),
        .files_bytes = std::max<int64_t>(bounding.shared_bytes - shared_bytes, 0),
    };
    // v1 has no such file: then the machine's pressure is shown.
    auto pressure = read_proc_file(report_.bound.cgroup / "memory.pressure");
    if (report_.bound.cgroup.empty() || !pressure) pressure = read_proc_file("/proc/pressure/memory");
    around.some_percent = percent_after(pressure.value_or(""), "some");
    around.full_percent = percent_after(pressure.value_or(""), "full");
    return around;
  }

  void take_deaths() {
    std::vector<int64_t> judged;
    for (const ProcessTree::Death& death : tree_.take_deaths()) {
      judge(death.process, death.status);
      judged.push_back(death.process.pid);
    }
    // Our own children are zombies until here: the command, and orphans, also such as lived between two looks.
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
      const pid_t pid = info.si_pid;
      // Before it is reaped: the zombie still tells its name and status.
      if (std::find(judged.begin(), judged.end(), pid) == judged.end()) judge(unseen(pid), status_of_dead(pid, -1));
      const ChildEnd end = wait_for(pid);
      if (pid == child_) report_.end = end;
      // waitid(2) may leave it as it is where no other child has ended.
      info = {};
    }
  }

  static WatchedProcess unseen(int64_t pid) {
    WatchedProcess process;
    process.pid = pid;
    process.name = process_name(pid);
    return process;
  }

  void judge(const WatchedProcess& process, std::optional<int> status) {
    constexpr size_t most = 100;
    const auto place = places_.find(process.pid);
    WatchedDeath death{.process = process, .time_ms = now_ms(), .is_command = process.pid == child_};
    if (status && !WIFSIGNALED(*status)) return;
    if (status) death.signal = WTERMSIG(*status), death.core_dumped = WCOREDUMP(*status);
    // Without a status only a counted kill tells how it ended.
    if (!status || death.signal == SIGKILL) {
      if (place != places_.end()) death.oom_kill = kills_.claim(process.pid, place->second);
      if (!death.oom_kill) death.oom_kill = kills_.claim(process.pid, std::nullopt);  // it may have moved since
    }
    if (death.oom_kill) death.signal = SIGKILL;
    if (death.signal == 0) return;  // nobody saw its status, and nothing speaks of a kill
    if (report_.deaths.size() >= most) {
      ++report_.more_deaths;
      return;
    }
    const Timeline& timeline = report_.timeline;
    if (!timeline.samples().empty()) death.together_bytes = timeline.samples().back().total_bytes;
    death.growth = timeline.growth();
    death.around = timeline.around();
    if (death.growth) death.grower = timeline.series()[death.growth->series];
    report_.deaths.push_back(std::move(death));
    next_look_ = Clock::now();  // what is left without it
  }

  const WatchOptions& options_;
  WatchReport report_;
  ProcessTree tree_;
  OomKills kills_;
  std::map<int64_t, std::optional<OomKills::Place>> places_;
  pid_t child_ = -1;
  Clock::time_point started_, next_look_, told_;
};

int weight(const WatchedDeath& death) {
  if (!death.is_violent()) return 0;
  return (death.oom_kill ? 4 : 2) + (death.is_command ? 0 : 1);
}

}  // namespace

bool WatchedDeath::is_violent() const {
  switch (signal) {
    case SIGKILL:
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
      return true;
    default:
      return false;
  }
}

const WatchedDeath* WatchReport::main_death() const {
  // Of equals the earliest.
  const auto first = std::max_element(deaths.begin(), deaths.end(),
                                      [](const auto& a, const auto& b) { return weight(a) < weight(b); });
  return first == deaths.end() || weight(*first) == 0 ? nullptr : &*first;
}

WatchReport watch(const std::vector<std::string>& command, const WatchOptions& options) {
  return Watch(command, options).run();
}

}  // namespace headroom
