// Amounts as people read them in log lines and reports.
#pragma once

#include <string>

#include "memory/size_text.hpp"

namespace headroom {

// "0.04 s", "12.5 s", "2 min 10 s", "3 h 5 min".
std::string time_text(double seconds);

// "82.45 %" of a part of one, with that many digits after the point.
std::string percent_text(double part, int digits);

}  // namespace headroom
