// What a smaller batch with more accumulation costs and saves where the mathematics stay the same, beside what the
// users' guides say of it.
#pragma once

#include <string>

#include "report/sweep_reading.hpp"

namespace headroom {

// A table a group of trials of one identity that differ in batch size, each against the group's largest batch; "" where
// there is none.
std::string trade_off(const SweepReading& sweep);

}  // namespace headroom
