#include "ranks/launch.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "memory/file_memory.hpp"
#include "memory/supervised.hpp"
#include "ranks/members.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto grace = std::chrono::seconds(10);

Descriptor open_file(const std::filesystem::path& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) throw Error(Exit::cannot_write, "ranks", "cannot open " + path.string());
  return file;
}

struct RankProcess {
  pid_t id = -1;
  std::optional<int> exit_code;  // once it has ended
  bool is_gone = false;          // it was killed, and the others go on without it
};

struct Loss {
  int rank, group;  // the group without it
};

bool is_a_stop(int exit_code) {
  return exit_code == static_cast<int>(Exit::resumable) || exit_code == static_cast<int>(Exit::interrupted);
}
bool is_a_failure(int exit_code) { return exit_code != 0 && !is_a_stop(exit_code); }
bool was_killed(int exit_code) { return exit_code == static_cast<int>(Exit::killed); }

class Launch {
 public:
  Launch(const std::filesystem::path& program, const std::vector<std::string>& words, int count, int least)
      : signals_({SIGTERM, SIGINT, SIGUSR1, SIGHUP}), folder_("ranks"), roster_(folder_.path()), least_(least) {
    for (int rank = 0; rank < count; ++rank) processes_.push_back({start(program, words, rank, count), {}, false});
  }
  ~Launch() {
    for (const RankProcess& process : processes_) {
      if (!process.exit_code) end(process, SIGKILL);
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
      if (group_.group > 0) follow();
      if (failed_ && Clock::now() - *failed_ > grace) {
        for (const RankProcess& process : processes_) {
          if (!process.exit_code) end(process, SIGKILL);
        }
      }
    }
    if (group_.group > 0) follow();
    return conclude();
  }

 private:
  std::filesystem::path words_of(int rank) const { return folder_.path() / ("rank-" + std::to_string(rank)); }
  std::filesystem::path results_of(int rank) const { return folder_.path() / ("result-" + std::to_string(rank)); }

  pid_t start(const std::filesystem::path& program, std::vector<std::string> words, int rank, int count) {
    words.insert(words.begin(), program.string());
    ChildOptions options{
        .environment = {rank_variable + ("=" + std::to_string(rank)), ranks_variable + ("=" + std::to_string(count)),
                        std::string(ranks_store_variable) + "=" + (folder_.path() / "store").string(),
                        // So that it ends with us.
                        sweep_variable + std::to_string(getpid())},
        .signal_mask = &signals_.mask_before(),
        // In a group of its own: it can be ended with its trainer.
        .apart = true};
    if (least_ > 0) options.environment.push_back(ranks_elastic_variable + std::string("=1"));
    try {
      if (rank == 0) return start_child(std::move(words), options);
      const Descriptor nowhere = open_file("/dev/null", O_RDWR),
                       said = open_file(words_of(rank), O_WRONLY | O_CREAT | O_APPEND);
      options.stdin_file = options.stdout_file = nowhere.get();
      options.stderr_file = said.get();
      // It may come to tell the run's result.
      const Descriptor result = least_ > 0 ? open_file(results_of(rank), O_WRONLY | O_CREAT | O_APPEND) : Descriptor();
      if (result) options.stdout_file = result.get();
      return start_child(std::move(words), options);
    } catch (const std::system_error& problem) {
      throw Error(Exit::bug, "ranks", "cannot start " + program.string() + ": " + problem.code().message());
    }
  }

  static void end(const RankProcess& process, int signal) { kill(-process.id, signal); }

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
    if (least_ > 0) decide(process);
    if (is_a_failure(*process.exit_code) && !process.is_gone && !failed_) failed_ = Clock::now();
  }

  int rank_of(const RankProcess& process) const { return static_cast<int>(&process - processes_.data()); }

  // A front whose trainer was killed no longer passes signals on: it ends by one that we passed on to it.
  bool had_lost_trainer(const RankProcess& process, const ChildEnd& ended) const {
    return least_ > 0 && ended.by_signal() && ended.signal() == passed_on_ && roster_.process_of(rank_of(process));
  }

  // Whether the others go on without it. Only what was killed is taken for an accident: an error of its own would come
  // again. Those that have not met would wait for it. One that has done its part is not waited for by those that take
  // the last evaluation again.
  void decide(RankProcess& process) {
    const int ended = *process.exit_code;
    // Where its front alone was killed, the trainer is to end before it stops all others.
    if (was_killed(ended)) end(process, SIGKILL);
    if (group_.ended || (ended == 0 && group_.group == 0)) return;
    ++group_.group;
    group_.ranks.clear();
    for (int rank = 0; rank < std::ssize(processes_); ++rank) {
      if (!processes_[static_cast<size_t>(rank)].exit_code) group_.ranks.push_back(rank);
    }
    process.is_gone = was_killed(ended) && std::ssize(group_.ranks) >= least_ && have_signed_in(group_.ranks);
    group_.ended = ended != 0 && !process.is_gone;
    sizes_.push_back(std::ssize(group_.ranks));
    roster_.tell(group_);
    if (process.is_gone) untold_.push_back({rank_of(process), group_.group});
  }

  bool have_signed_in(const std::vector<int>& ranks) const {
    return std::ranges::all_of(ranks, [this](int rank) { return roster_.process_of(rank).has_value(); });
  }

  // What those that are left say: rank 0's words are ours already.
  void follow() {
    std::erase_if(untold_, [this](const Loss& loss) {
      for (int group = loss.group; group <= group_.group; ++group) {
        if (const auto step = roster_.step_of(group)) return tell_lost(loss.rank, group, *step), true;
      }
      return false;
    });
    const int first = first_left();
    if (first == 0) return;
    if (first != followed_) {
      followed_ = first;
      shown_ = 0;
    }
    shown_ += copy(words_of(first), shown_, stderr);
  }

  void tell_lost(int rank, int group, int64_t step) const {
    const auto trainer = roster_.process_of(rank);
    const int64_t left = sizes_[static_cast<size_t>(group) - 1];
    // On a terminal the progress line is in its place.
    std::fprintf(stderr, "%srank %d (pid %d) was killed by signal %d; %d %s on from step %lld\n",
                 isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", rank,
                 trainer ? *trainer : processes_[static_cast<size_t>(rank)].id, SIGKILL, static_cast<int>(left),
                 left == 1 ? "rank goes" : "ranks go", static_cast<long long>(step));
  }

  // The first of those that the run went on with.
  int first_left() const {
    const auto left = std::ranges::find(processes_, false, &RankProcess::is_gone);
    return static_cast<int>(left - processes_.begin());
  }

  // Returns how many bytes there were behind `from`.
  static int64_t copy(const std::filesystem::path& file, int64_t from, std::FILE* to) {
    std::ifstream stream(file, std::ios::binary);
    stream.seekg(from);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    std::fwrite(text.data(), 1, text.size(), to);
    std::fflush(to);
    return std::ssize(text);
  }

  int conclude() const {
    const int first_rank = first_left();
    const int first = *processes_[static_cast<size_t>(first_rank)].exit_code;
    if (first_rank > 0) copy(results_of(first_rank), 0, stdout);
    int failed = 0;
    bool killed = false;
    for (size_t rank = processes_.size(); rank-- > 0;) {
      const int ended = *processes_[rank].exit_code;
      if (!is_a_failure(ended) || processes_[rank].is_gone) continue;
      // Perhaps by us, because it went on without the one that failed.
      if (was_killed(ended)) {
        killed = true;
      } else {
        failed = ended;
      }
      // Otherwise rank 0 has said the same.
      if (static_cast<int>(rank) != first_rank && rank > 0 && ended != first) show(static_cast<int>(rank));
    }
    // The one that writes the run's result was lost, and nobody has taken its place.
    const auto wrote = [first_rank](const Loss& loss) { return loss.rank < first_rank; };
    if (first == 0 && std::ranges::any_of(untold_, wrote)) return static_cast<int>(Exit::resumable);
    if (least_ > 0 && first == 0) return 0;  // and what else was lost was not needed
    return failed != 0 ? failed : killed ? static_cast<int>(Exit::resumable) : first;
  }

  void show(int rank) const {
    std::ifstream said(words_of(rank));
    for (std::string line; std::getline(said, line);) std::fprintf(stderr, "[rank %d] %s\n", rank, line.c_str());
  }

  SignalRelay signals_;
  const ScratchFolder folder_;
  const Roster roster_;
  const int least_;  // 0: a run whose rank is lost ends
  std::vector<RankProcess> processes_;
  int passed_on_ = 0;                        // the last signal; 0: none
  std::optional<Clock::time_point> failed_;  // when the first of them did
  Members group_;                            // that was told last
  std::vector<int64_t> sizes_;               // of the groups from 1 on
  std::vector<Loss> untold_;                 // since which nobody has gone on
  int followed_ = 0;                         // the rank whose words are shown,
  int64_t shown_ = 0;                        // and how many bytes of them were
};

}  // namespace

int launch_ranks(const std::filesystem::path& program, const std::vector<std::string>& words, int count, int least) {
  return Launch(program, words, count, least).wait();
}

}  // namespace headroom
