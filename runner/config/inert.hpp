// Keys that are read, checked and recorded, but change nothing: because this version does not act on them yet, or
// because another key makes them meaningless.
#pragma once

#include <string_view>

#include "config/experiment.hpp"

namespace headroom {

// Why the value `experiment` holds for `key` does nothing; "" when it does something.
std::string_view why_inert(const Experiment& experiment, std::string_view key);

}  // namespace headroom
