// Memory by owner over time, against the limit; below it, when memory was given back or ran out.
#pragma once

#include <string>

#include "report/run_reading.hpp"

namespace headroom {

// "" where nothing is known.
std::string memory_chart(const RunReading& run);

// What an event says beside its time and kind, as text: "step 12, doing forward, requested 12.0 MiB".
std::string event_text(const nlohmann::json& event);

}  // namespace headroom
