#include "memory/pressure.hpp"

#include <algorithm>

namespace headroom {

void PressureLadder::judge(bool is_short, int64_t wanted_bytes, Clock::time_point now) {
  if (is_short != was_short_) {
    (is_short ? short_since_ : calm_since_) = now;
    was_short_ = is_short;
    last_give_back_ = {};
    last_change_ = now;
  }
  if (is_short) {
    if (now - last_give_back_ >= std::chrono::seconds(1)) {
      last_give_back_ = now;
      returned_bytes_ += give_back_memory(wanted_bytes);
    }
    if (now - last_change_ >= patience) {
      last_change_ = now;
      tighten_next();
    }
  } else if (!in_force_.empty() && now - std::max(calm_since_, last_change_) >= calm) {
    last_change_ = now;
    const auto rung = in_force_.back();
    in_force_.pop_back();
    rung->relax();
    say_("memory is no longer short: " + rung->name + " as before");
  }
}

void PressureLadder::tighten_next() {
  for (const auto& rung : rungs()) {
    if (!rung->tighten || std::ranges::find(in_force_, rung) != in_force_.end()) continue;
    say_("memory is short: " + rung->name);
    rung->tighten();
    ++tightened_;
    if (rung->relax) in_force_.push_back(rung);
    return;
  }
}

}  // namespace headroom
