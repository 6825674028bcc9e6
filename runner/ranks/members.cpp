#include "ranks/members.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// The launcher needs a moment to see a death. Where it has not seen one, there is none to go on without.
constexpr auto time_to_be_told = seconds(30);
// Of a run that is to stop: one of its ranks may compute for long.
constexpr auto time_to_stop = seconds(3);
constexpr auto one_look = std::chrono::milliseconds(5);

// Whole, or not there.
void write_whole(const fs::path& file, const std::string& text) {
  fs::path written = file;
  written += "." + std::to_string(getpid());
  std::ofstream(written) << text << '\n';
  std::error_code error;
  fs::rename(written, file, error);
}

std::optional<int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

fs::path trainer_file(const fs::path& folder, int rank) { return folder / ("trainer-" + std::to_string(rank)); }

fs::path first_file(const fs::path& run) { return run / "ranks" / "first"; }

}  // namespace

void Roster::tell(const Members& members) const {
  std::string text = std::to_string(members.group) + (members.ended ? " ended" : " goes-on");
  for (const int rank : members.ranks) text += ' ' + std::to_string(rank);
  write_whole(folder_ / "members", text);
}

Members Roster::read() const {
  std::ifstream stream(folder_ / "members");
  Members members;
  std::string word;
  if (!(stream >> members.group >> word)) return {};
  members.ended = word == "ended";
  for (int rank = 0; stream >> rank;) members.ranks.push_back(rank);
  return members;
}

void Roster::sign_in(int rank) const { write_whole(trainer_file(folder_, rank), std::to_string(getpid())); }

std::optional<pid_t> Roster::process_of(int rank) const {
  const auto number = number_in(trainer_file(folder_, rank));
  return number ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

void Roster::sign_out(int rank) const {
  std::error_code none_there;
  fs::remove(trainer_file(folder_, rank), none_there);
}

void Roster::tell_run(const fs::path& folder) const { write_whole(folder_ / "run", fs::absolute(folder).string()); }

fs::path Roster::run() const {
  std::ifstream stream(folder_ / "run");
  std::string folder;
  std::getline(stream, folder);
  return folder;
}

void Roster::go_on(int group, int64_t step) const {
  write_whole(folder_ / ("step-" + std::to_string(group)), std::to_string(step));
}

std::optional<int64_t> Roster::step_of(int group) const {
  return number_in(folder_ / ("step-" + std::to_string(group)));
}

fs::path Roster::store_of(int group) const { return folder_ / ("store-" + std::to_string(group)); }

namespace {

std::string mark_of(int group, int rank) { return "came-" + std::to_string(group) + "-" + std::to_string(rank); }

}  // namespace

void Roster::come_to(int group, int rank) const { write_whole(folder_ / mark_of(group, rank), ""); }

bool Roster::have_all_come(const Members& members) const {
  std::error_code error;
  return std::ranges::all_of(members.ranks,
                             [&](int rank) { return fs::exists(folder_ / mark_of(members.group, rank), error); });
}

std::optional<Members> next_group(const Roster& roster, int group, int rank, const std::function<bool()>& stopped) {
  const auto began = Clock::now();
  std::optional<Clock::time_point> stop_began;
  for (int came_to = group;;) {
    Members now = roster.read();
    if (now.ended) return std::nullopt;
    if (now.group > group) {
      if (std::ranges::find(now.ranks, rank) == now.ranks.end()) return std::nullopt;
      if (came_to != now.group) roster.come_to(came_to = now.group, rank);
      if (roster.have_all_come(now)) return now;
    } else if (Clock::now() - began > time_to_be_told) {
      return std::nullopt;
    }
    if (!stop_began && stopped()) stop_began = Clock::now();
    if (stop_began && Clock::now() - *stop_began > time_to_stop) return std::nullopt;
    std::this_thread::sleep_for(one_look);
  }
}

std::optional<int> group_before_return(const Roster& roster, int rank, const std::function<bool()>& stopped) {
  for (;;) {
    const Members now = roster.read();
    if (now.ended || stopped()) return std::nullopt;
    if (std::ranges::find(now.ranks, rank) != now.ranks.end()) return now.group - 1;
    std::this_thread::sleep_for(one_look);
  }
}

void note_first_rank(const fs::path& run, int rank) { write_whole(first_file(run), std::to_string(rank)); }

void forget_first_rank(const fs::path& run) {
  std::error_code none_there;
  fs::remove(first_file(run), none_there);
}

int first_rank_of(const fs::path& run) { return static_cast<int>(number_in(first_file(run)).value_or(0)); }

}  // namespace headroom
