// Memory by owner over time, with the limit; below it, the moments when memory was released or ran out.
#pragma once

#include <string>

#include "report/run_reading.hpp"

namespace headroom {

// "" where the run has no figures.
std::string memory_chart(const RunReading& run);

// The fields of an event other than its time and kind, as text: "step 12, doing forward, requested 12.0 MiB".
std::string event_text(const nlohmann::json& event);

}  // namespace headroom
