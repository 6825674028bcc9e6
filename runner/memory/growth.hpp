// Finds owners of memory that grow: LeakWatch looks for leaks during a run, what_grew() reads the black box of a run
// that has ended, and holder_knob() names the key that makes an owner smaller.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/black_box.hpp"
#include "memory/ledger.hpp"

namespace headroom {

// Names a leak: an owner that holds more after nearly every window than after the one before. [compute]
class LeakWatch {
 public:
  static constexpr int64_t windows = 50, least_rises = 45, least_bytes = 1 << 20;

  // Call it once after every window. Returns a sentence when, over the last 50 windows, an owner (or memory without an
  // owner) rose in at least 45 and by at least 1 MiB in total; each is reported once.
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

// The owners of the ledger, then slack and other: together they are everything a process holds.
inline constexpr size_t holder_count = owner_count + 2;
std::string_view holder_name(size_t holder);
int64_t holder_bytes(const BlackBoxRecord& record, size_t holder);

// The keys of experiment files that make this holder smaller, the cheapest first.
std::string_view holder_knob(size_t holder);

// The holders of a record, the largest first, without those that hold nothing.
std::vector<size_t> largest_holders(const BlackBoxRecord& record);

struct Growth {
  size_t holder = 0;
  int64_t rise_bytes = 0;
  double seconds = 0;  // between the first and the last of the records
};

// The holder that rose most: its largest value in the last quarter of the records against that in their first half, so
// that memory which comes and goes with every step is not growth. nullopt when none rose by a megabyte.
std::optional<Growth> what_grew(const std::vector<BlackBoxRecord>& records);

}  // namespace headroom
