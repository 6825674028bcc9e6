// The processes of a run, as they speak to each other.
#pragma once

#include <ATen/core/Tensor.h>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "memory/descriptor.hpp"
#include "mutex.hpp"
#include "ranks/members.hpp"
#include "ranks/ranks.hpp"
#include "ranks/watch.hpp"

namespace headroom {

// In place of Error(resumable): the others can go on, by rejoin(). All sums that were under way have ended.
class RankLost : public Error {
 public:
  explicit RankLost(const std::string& sentence) : Error(Exit::resumable, "ranks", sentence) {}
};

// Every function is called by all ranks, in the same order. Where one of them has ended, or cannot be reached,
// Error(resumable) names it and its host, on all others: within seconds, since a process that computes and does not ask
// is ended by then, with the same exit code. REQUIRES: SIGPIPE is ignored, because Gloo writes to ranks that have
// ended. [compute]
class RankGroup {
 public:
  // Meets the others; one that comes back does that by rejoin(). REQUIRES !ranks.alone(). Error(bad_input) where they
  // do not come within five minutes.
  explicit RankGroup(const Ranks& ranks);
  // Without leave() before, the others take this process for lost.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  const Ranks& ranks() const { return ranks_; }
  bool is_first() const { return ranks_.is_first(); }
  const std::string& host_of(int rank) const { return hosts_[static_cast<size_t>(rank)]; }
  int launched_rank_of(int rank) const;  // the number that it goes by; another one where a rank before it was lost

  // In place, on the CPU; afterwards all ranks hold the same bits. The tensor is contiguous.
  void add_up(at::Tensor tensor);
  void add_up(std::span<double> numbers);
  // add_up() in two parts: this rank computes in between, and leaves the tensor alone. Sums are made one after the
  // other, in the order in which they were begun.
  class Sum;
  std::shared_ptr<Sum> begin_to_add_up(at::Tensor tensor);
  void end(Sum& sum);

  // What each rank gives, in the order of ranks.
  std::vector<std::string> gather(std::string_view bytes);
  // The same of numbers, or of a struct of them.
  template <class Value>
  std::vector<Value> gather_values(const Value& own) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::vector<Value> all;
    for (const std::string& bytes : gather({reinterpret_cast<const char*>(&own), sizeof own}))
      std::memcpy(&all.emplace_back(), bytes.data(), sizeof own);
    return all;
  }
  // What rank 0 gives; the others' is not looked at.
  std::string from_first(std::string_view bytes);
  // Whether it is true on all ranks.
  bool on_all(bool holds);
  // Returns once all have come here.
  void wait_for_all();
  // The run is done, or all have found the same reason to end it: each may end in its own time.
  void leave();

  // Where this rank notes down who is lost, if it ends in the middle of its window (lost_note.hpp). An older note goes.
  // Of this rank alone, once, before the first window. [control]
  void keep_lost_note_at(const std::filesystem::path& file);

  // In place of rank 0, which is lost: the first of the others.
  bool stands_in() const;

  // For a rank that comes back: where the run's files lie. Of the first rank, where Ranks::elastic.
  void tell_run(const std::filesystem::path& folder) const { roster().tell_run(folder); }
  // From here on a rank that is lost is RankLost, and one that computes is waited for. Does nothing where the launcher
  // does not follow such runs (Ranks::elastic). Before it, a loss ends the run.
  void outlive_losses();
  // After RankLost, or of one that comes back: those that are there become the group, with ranks of their own.
  // Error(resumable), with the sentence of RankLost, where the run does not go on. `stopped`: whether it is to stop, so
  // that nobody is waited for that computes for long.
  void rejoin(const std::function<bool()>& stopped);
  std::vector<int> members() const;  // as launched, in the order of their ranks
  // Whether the launcher has told of a group after this one. That may come to one rank before the others.
  bool is_followed() const;
  // Once all have agreed on it: leaves this group for the next one. RankLost; rejoin() follows.
  [[noreturn]] void make_way();
  bool has_lost() const { return watch_ != nullptr && watch_->lost(); }
  // The run goes on from `step`: tells the launcher, of the first rank.
  void went_on(int64_t step) const;

  // Rank 0 is done with `body` before the others begin it: what it makes, they find. One that comes back finds all.
  template <class Body>
  auto first_goes_first(Body&& body) {
    if (ranks_.comes_back) return body();
    if (!is_first()) wait_for_all();
    auto made = body();
    if (is_first()) wait_for_all();
    return made;
  }

 private:
  struct Backend;
  std::string name_of(int rank) const;  // "rank 1 of 4 on host a"
  Roster roster() const;                // REQUIRES Ranks::elastic
  void meet();
  bool meets_in_vain() const;
  [[noreturn]] void give_up(const std::string& problem);
  [[noreturn]] void end_group(const std::string& sentence);
  void break_off();
  enum class SumState { ended, asleep, running };  // asleep: for good, and it writes no more
  SumState last_sum() const;
  bool end_overdue(int lost) const;  // false: it is not decided yet

  Ranks ranks_;
  std::atomic<bool> outlives_losses_ = false;
  int group_ = 0;
  std::vector<int> numbers_;       // as launched, of a group that is not the first
  std::string problem_;            // the last RankLost
  std::optional<int> lost_;        // of the group that broke
  std::vector<Descriptor> lines_;  // of the collectives, where losses are outlived
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<Sum> last_begun_;  // where it has ended, all have
  std::vector<std::string> hosts_;
  mutable Mutex note_mutex_;
  std::filesystem::path lost_note_ GUARDED_BY(note_mutex_);  // empty: nowhere
  std::unique_ptr<RankWatch> watch_;                         // once they have met
};

// NULL where the process is alone: then nothing of c10d is made.
std::shared_ptr<RankGroup> join_group(const Ranks& ranks);

}  // namespace headroom
