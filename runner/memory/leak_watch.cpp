#include "memory/leak_watch.hpp"

#include "memory/size_text.hpp"

namespace headroom {

namespace {

int64_t held_by(const LedgerReading& reading, size_t i) {
  return i < owner_count ? reading.live_bytes[i] : reading.other_bytes;
}

}  // namespace

std::optional<std::string> LeakWatch::after_window(const LedgerReading& reading) {
  if (seen_++ == 0) {
    begin(reading);
    return std::nullopt;
  }
  for (size_t i = 0; i < held_.size(); ++i) {
    const int64_t now = held_by(reading, i);
    held_[i].rises += now > held_[i].last ? 1 : 0;
    held_[i].last = now;
  }
  if (seen_ <= windows) return std::nullopt;
  std::optional<std::string> sentence;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (i == static_cast<size_t>(Owner::cache)) continue;  // fills up to a limit of its own
    Held& held = held_[i];
    const int64_t grown = held.last - held.first;
    if (sentence || held.named || held.rises < least_rises || grown < least_bytes) continue;
    held.named = true;
    const std::string who =
        i < owner_count ? "the " + std::string(owner_name(static_cast<Owner>(i))) + " hold"
                        : "memory that no tensor, batch or cache accounts for (a plugin's own, or a library's) holds";
    sentence = "leak: " + who + " " + size_text(grown) + " more than " + std::to_string(windows) +
               " windows ago, and rose in " + std::to_string(held.rises) + " of them; now " + size_text(held.last);
  }
  begin(reading);
  seen_ = 1;
  return sentence;
}

void LeakWatch::begin(const LedgerReading& reading) {
  for (size_t i = 0; i < held_.size(); ++i) {
    held_[i].first = held_[i].last = held_by(reading, i);
    held_[i].rises = 0;
  }
}

}  // namespace headroom
