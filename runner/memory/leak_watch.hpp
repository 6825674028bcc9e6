// Names a leak: an owner that holds more after nearly every window than after the one before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/ledger.hpp"

namespace headroom {

// [compute]
class LeakWatch {
 public:
  static constexpr int64_t windows = 50, least_rises = 45, least_bytes = 1 << 20;

  // Once after every window. A sentence when, over the last 50 windows, an owner (or what is on nobody's account) rose
  // in at least 45 and by at least 1 MiB together; each is named once.
  std::optional<std::string> after_window(const LedgerReading& reading);

 private:
  struct Held {
    int64_t first = 0, last = 0, rises = 0;
    bool named = false;
  };
  void begin(const LedgerReading& reading);

  std::array<Held, owner_count + 1> held_;  // the last: other
  int64_t seen_ = 0;
};

}  // namespace headroom
