#include "ranks/launch.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <list>
#include <optional>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "ranks/members.hpp"
#include "ranks/rank_process.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto grace = std::chrono::seconds(10);

// To be told once a group goes on.
struct Change {
  const RankProcess* process;
  int group;      // the first without it, or with it
  pid_t trainer;  // its process
  bool came_back;
};

bool is_a_stop(int exit_code) {
  return exit_code == static_cast<int>(Exit::resumable) || exit_code == static_cast<int>(Exit::interrupted);
}
bool is_a_failure(int exit_code) { return exit_code != 0 && !is_a_stop(exit_code); }
bool was_killed(int exit_code) { return exit_code == static_cast<int>(Exit::killed); }

class Launch {
 public:
  Launch(const std::filesystem::path& program, const std::vector<std::string>& words, int count, Elasticity elasticity)
      : signals_({SIGTERM, SIGINT, SIGUSR1, SIGHUP}),
        starter_(program, count, elasticity.least > 0, signals_.mask_before()),
        roster_(starter_.folder()),
        elasticity_(std::move(elasticity)),
        restarts_left_(elasticity_.restarts) {
    for (int rank = 0; rank < count; ++rank) {
      RankProcess process{.rank = rank, .number = rank};
      process.id = starter_.start(words, process);
      processes_.push_back(process);
    }
  }
  ~Launch() {
    for (const RankProcess& process : processes_) {
      if (!process.exit_code) RankStarter::signal_all(process, SIGKILL);
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  int wait() {
    while (std::ranges::any_of(processes_, [](const RankProcess& process) { return !process.exit_code; })) {
      pollfd ready{.fd = signals_.file(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, 200);
      pass_signals_on();
      for (RankProcess& process : processes_) look_at(process);
      take_in_those_that_came_back();
      if (group_.group > 0) follow();
      if (failed_ && Clock::now() - *failed_ > grace) {
        for (const RankProcess& process : processes_) {
          if (!process.exit_code) RankStarter::signal_all(process, SIGKILL);
        }
      }
    }
    if (group_.group > 0) follow();
    return conclude();
  }

 private:
  bool is_elastic() const { return elasticity_.least > 0; }

  // To the front of each rank, which passes it on to its trainer.
  void pass_signals_on() {
    bool from_terminal = false;
    while (const auto received = signals_.take(from_terminal)) {
      passed_on_ = received->signal == SIGHUP ? SIGTERM : received->signal;
      for (const RankProcess& process : processes_) {
        if (!process.exit_code) kill(process.id, passed_on_);
      }
    }
  }

  void look_at(RankProcess& process) {
    if (process.exit_code || !ended_by(process.id)) return;
    const ChildEnd ended = wait_for(process.id);
    process.exit_code = had_lost_trainer(process, ended) ? static_cast<int>(Exit::killed) : ended.exit_code();
    if (is_elastic()) decide(process);
    if (is_a_failure(*process.exit_code) && !process.is_gone && !failed_) failed_ = Clock::now();
  }

  // A front whose trainer was killed no longer passes signals on: it ends by one that we passed on to it.
  bool had_lost_trainer(const RankProcess& process, const ChildEnd& ended) const {
    return is_elastic() && ended.by_signal() && ended.signal() == passed_on_ && roster_.process_of(process.rank);
  }

  // Whether the others go on without it. Only what was killed is taken for an accident: an error of its own would come
  // again. Those that have not met would wait for it. One that has done its part is not waited for by those that take
  // the last evaluation again.
  void decide(RankProcess& process) {
    const int ended = *process.exit_code;
    // Where its front alone was killed, the trainer is to end before it stops all others.
    if (was_killed(ended)) RankStarter::signal_all(process, SIGKILL);
    if (is_pending(process)) return leave_out(process);
    if (group_.ended || (ended == 0 && group_.group == 0)) return;
    process.is_gone = was_killed(ended) && can_go_on();
    group_.ended = ended != 0 && !process.is_gone;
    if (!process.is_gone) dismiss_those_that_come_back();
    tell_next_group();
    if (!process.is_gone) return;
    changes_.push_back({&process, group_.group, roster_.process_of(process.rank).value_or(process.id), false});
    start_again(process.rank);
  }

  // Those that came back and do not hold the run's state yet do not count.
  bool can_go_on() const {
    int left = 0;
    for (const RankProcess& process : processes_) {
      if (process.exit_code || is_pending(process)) continue;
      if (!roster_.process_of(process.rank)) return false;
      ++left;
    }
    return left >= elasticity_.least;
  }

  void tell_next_group() {
    ++group_.group;
    group_.ranks.clear();
    for (const RankProcess* process : in_order()) {
      if (!process->exit_code && !process->is_gone) group_.ranks.push_back(process->rank);
    }
    sizes_.push_back(std::ssize(group_.ranks));
    roster_.tell(group_);
  }

  // All that have belonged to a group, in the order of their places.
  std::vector<const RankProcess*> in_order() const {
    std::vector<const RankProcess*> all;
    for (const RankProcess& process : processes_) {
      if (process.group >= 0) all.push_back(&process);
    }
    std::ranges::stable_sort(all, {}, [](const RankProcess* process) { return process->group; });
    return all;
  }

  // It was started again, and the others have not gone on with it yet.
  bool is_pending(const RankProcess& process) const {
    return process.group < 0 || (process.group > 0 && !step_since(process.group));
  }

  struct Start {
    int group;
    int64_t step;
  };
  // Where a group from `first` on has gone on.
  std::optional<Start> step_since(int first) const {
    for (int group = first; group <= group_.group; ++group) {
      if (const auto step = roster_.step_of(group)) return Start{group, *step};
    }
    return std::nullopt;
  }

  bool is_ending() const {
    return passed_on_ != 0 || group_.ended || std::ranges::any_of(processes_, [](const RankProcess& process) {
             return process.exit_code && !process.is_gone;
           });
  }

  void start_again(int rank) {
    const std::filesystem::path run = roster_.run();
    if (restarts_left_ == 0 || run.empty() || is_ending()) return;
    --restarts_left_;
    roster_.sign_out(rank);
    RankProcess process{.rank = rank, .number = static_cast<int>(processes_.size()), .group = -1};
    try {
      process.id = starter_.start(elasticity_.resuming_words(run), process);
      processes_.push_back(process);
    } catch (const Error& problem) {
      say(problem.what());
    }
  }

  void take_in_those_that_came_back() {
    for (RankProcess& process : processes_) {
      if (process.group >= 0 || process.exit_code || is_ending()) continue;
      const auto trainer = roster_.process_of(process.rank);
      if (!trainer) continue;
      process.group = group_.group + 1;
      tell_next_group();
      changes_.push_back({&process, group_.group, *trainer, true});
    }
  }

  // The others go on as if it had not been started.
  void leave_out(RankProcess& process) {
    process.is_gone = true;
    std::erase_if(changes_, [&](const Change& change) { return change.process == &process; });
    // Also where it belonged to none: the others forget the post-mortem that its end has left.
    if (!group_.ended) tell_next_group();
    if (is_ending()) return;
    say("rank " + std::to_string(process.rank) + " was started again, and ended with exit code " +
        std::to_string(*process.exit_code) + " before the others went on with it");
    starter_.show_words(process);
    if (was_killed(*process.exit_code)) start_again(process.rank);
  }

  // They come too late.
  void dismiss_those_that_come_back() {
    for (RankProcess& process : processes_) {
      if (process.exit_code || !is_pending(process)) continue;
      process.is_gone = true;
      RankStarter::signal_all(process, SIGKILL);
    }
  }

  // What those that are left say: rank 0's words are ours already.
  void follow() {
    std::erase_if(changes_, [this](const Change& change) {
      const auto start = step_since(change.group);
      if (start) tell(change, *start);
      return start.has_value();
    });
    const RankProcess& first = first_left();
    if (first.number == 0) return;
    if (first.number != followed_) {
      followed_ = first.number;
      shown_ = 0;
    }
    shown_ += starter_.copy_words(first, shown_);
  }

  void tell(const Change& change, const Start& start) const {
    const int64_t left = sizes_[static_cast<size_t>(start.group) - 1];
    say("rank " + std::to_string(change.process->rank) + " (pid " + std::to_string(change.trainer) + ") " +
        (change.came_back ? "came back" : "was killed by signal " + std::to_string(SIGKILL)) + "; " +
        std::to_string(left) + (left == 1 ? " rank goes" : " ranks go") + " on from step " +
        std::to_string(start.step));
  }

  static void say(const std::string& line) {
    // On a terminal the progress line is in its place.
    std::fprintf(stderr, "%s%s\n", isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", line.c_str());
  }

  // The first of those that the run went on with.
  const RankProcess& first_left() const {
    const std::vector<const RankProcess*> all = in_order();
    return **std::ranges::find(all, false, [](const RankProcess* process) { return process->is_gone; });
  }

  int conclude() const {
    const RankProcess& first = first_left();
    const int result = *first.exit_code;
    if (first.number > 0) starter_.copy_result(first);
    int failed = 0;
    bool killed = false;
    for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
      const int ended = *process->exit_code;
      if (!is_a_failure(ended) || process->is_gone) continue;
      // Perhaps by us, because it went on without the one that failed.
      if (was_killed(ended)) {
        killed = true;
      } else {
        failed = ended;
      }
      // Otherwise rank 0 has said the same.
      if (process->number != first.number && process->number > 0 && ended != result) starter_.show_words(*process);
    }
    if (result == 0 && is_result_lost()) return static_cast<int>(Exit::resumable);
    if (is_elastic() && result == 0) return 0;  // and what else was lost was not needed
    return failed != 0 ? failed : killed ? static_cast<int>(Exit::resumable) : result;
  }

  // The one that writes it was lost, and nobody has taken its place.
  bool is_result_lost() const {
    const std::vector<const RankProcess*> all = in_order();
    const auto place = [&all](const RankProcess* process) { return std::ranges::find(all, process); };
    const auto first = place(&first_left());
    return std::ranges::any_of(
        changes_, [&](const Change& change) { return !change.came_back && place(change.process) < first; });
  }

  SignalRelay signals_;
  const RankStarter starter_;
  const Roster roster_;
  const Elasticity elasticity_;
  int restarts_left_;
  std::list<RankProcess> processes_;
  int passed_on_ = 0;                        // the last signal; 0: none
  std::optional<Clock::time_point> failed_;  // when the first of them did
  Members group_;                            // that was told last
  std::vector<int64_t> sizes_;               // of the groups from 1 on
  std::vector<Change> changes_;              // since which no group has gone on
  int followed_ = 0;                         // the process whose words are shown,
  int64_t shown_ = 0;                        // and how many bytes of them were
};

}  // namespace

int launch_ranks(const std::filesystem::path& program, const std::vector<std::string>& words, int count,
                 const Elasticity& elasticity) {
  return Launch(program, words, count, elasticity).wait();
}

}  // namespace headroom
