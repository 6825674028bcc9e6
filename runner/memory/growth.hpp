// Which holder of memory was growing when a run ended, and what a user can set against it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "memory/black_box.hpp"

namespace headroom {

// The owners of the ledger, then slack and other: together they are everything a process holds.
inline constexpr size_t holder_count = owner_count + 2;
std::string_view holder_name(size_t holder);
int64_t holder_bytes(const BlackBoxRecord& record, size_t holder);

// What to set so that this holder becomes smaller: keys of experiment files, the one that costs least first.
std::string_view holder_knob(size_t holder);

// The holders of a record, the largest first; those with nothing left out.
std::vector<size_t> largest_holders(const BlackBoxRecord& record);

struct Growth {
  size_t holder = 0;
  int64_t rise_bytes = 0;
  double seconds = 0;  // between the first and the last of the records
};

// The holder that rose most: its largest value in the last quarter of the records against that in their first half, so
// that what comes and goes with every step is no growth. nullopt when none rose by a megabyte.
std::optional<Growth> what_grew(const std::vector<BlackBoxRecord>& records);

}  // namespace headroom
