// The report of `headroom watch`, for people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "memory/watch.hpp"

namespace headroom {

inline double seconds_of(int64_t ms) { return static_cast<double>(ms) / 1000.0; }

// "python3 (process 77)".
std::string process_text(const std::string& name, int64_t pid);

// What killed the program, or that nothing did; which process grew; what to do. One line where all went well.
std::vector<std::string> watch_lines(const WatchReport& report);

// "format": 1; docs/postmortem.md names its keys.
nlohmann::json watch_json(const WatchReport& report);

// A self-contained SVG for light and dark pages: memory by process over time, the limit, what was killed when, and
// memory pressure.
std::string watch_svg(const WatchReport& report);

}  // namespace headroom
