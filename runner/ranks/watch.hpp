// Whether all ranks of a run are still there. Each holds a connection to rank 0, which tells the others whose has
// ended. A collective alone would notice a machine that is gone only once its timeout is over, and could not say whose
// it was. The collectives' own connections are looked at too: two ranks may reach rank 0 and not each other.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "memory/descriptor.hpp"
#include "mutex.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

class RankWatch {
 public:
  // Gives all ranks the text that rank 0 gave it.
  using FromFirst = std::function<std::string(const std::string& text)>;

  // Connects all ranks; made by all of them, within a minute, or until it is `in_vain`. `overdue` is called by the
  // watch's thread where this rank has not acknowledge()d or leave()d `patience` after one was lost: it computes, and
  // would do so in vain. It is called again and again until it returns true. `connections`: those of the collectives,
  // which are shut down where the way to the peer is cut. std::system_error.
  static constexpr std::chrono::milliseconds usual_patience{1000};
  RankWatch(
      const Ranks& ranks, const FromFirst& from_first, std::function<bool(int lost)> overdue,
      std::vector<int> connections = {}, std::chrono::milliseconds patience = usual_patience,
      const std::function<bool()>& in_vain = [] { return false; });
  // Without leave() before, the others take this rank for lost.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // The first rank that ended, or cannot be reached, before it left; nullopt: none so far. [any]
  std::optional<int> lost() const;
  // The same, for whom something has just failed: waits until it is known, at most so long. [any]
  std::optional<int> lost_within(std::chrono::milliseconds time) const;
  // This rank knows who is lost and ends. [any]
  void acknowledge();
  // Before the collectives' connections are closed. [any]
  void forget_connections();
  // The run is done: the ends of ranks are no losses from here on. Called by all of them. [control]
  void leave();

 private:
  struct Peer {
    int rank;
    Descriptor socket;
    bool is_there = true;
  };
  void meet(const Ranks& ranks, const FromFirst& from_first, const std::function<bool()>& in_vain);
  void run();
  void hear(Peer& peer);
  void lose(int rank);
  bool is_overdue() const;
  void shut_down_cut_connections();

  const bool is_first_;
  const std::function<bool(int)> overdue_;
  const std::chrono::milliseconds patience_;
  std::vector<Peer> peers_;  // of rank 0 all others, of the others rank 0
  Descriptor wake_;          // an eventfd: the thread ends
  mutable Mutex mutex_;
  mutable Condition changed_;
  std::vector<int> connections_ GUARDED_BY(mutex_);
  std::optional<int> lost_ GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point lost_at_ GUARDED_BY(mutex_);
  bool acknowledged_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace headroom
