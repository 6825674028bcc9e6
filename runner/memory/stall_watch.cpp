#include "memory/stall_watch.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

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

}  // namespace headroom
