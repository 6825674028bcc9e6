// Notices from outside that a run stands still: a call that does not return, a disk that does not answer. It sees
// plugin calls of the whole process: of several runs in one, a run that moves hides one that does not.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "memory/black_box.hpp"

namespace headroom {

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `after`: how long a run may stand still before that is told.
  explicit StallWatch(std::chrono::milliseconds after) : after_(after) {}

  // A look at the run's black box, BlackBoxView::head(). A clause: "no progress for 60 s at step 12 of epoch 1: 'wrist
  // read' has not returned". Told after `after`, and again each time that has doubled; nullopt: nothing to tell. Call
  // it at least twice in that time: what lies longer between two looks was not seen, as while both processes were
  // stopped. [control]
  std::optional<std::string> look(const BlackBoxReading& box, Clock::time_point now);

 private:
  std::chrono::milliseconds after_;
  std::optional<BlackBoxReading> last_;
  Clock::time_point looked_{};
  std::chrono::milliseconds still_{};    // how long it has stood still
  std::chrono::milliseconds tell_at_{};  // how long it must stand still to be told next
};

}  // namespace headroom
