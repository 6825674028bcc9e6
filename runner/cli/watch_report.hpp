// What `headroom watch` has seen, for people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "memory/watch.hpp"

namespace headroom {

inline double seconds_of(int64_t ms) { return static_cast<double>(ms) / 1000.0; }

// "python3 (process 77)".
std::string process_text(const std::string& name, int64_t pid);

// What killed it, or that nothing did; who grew; what to do. One line where all went well.
std::vector<std::string> watch_lines(const WatchReport& report);

// "format": 1; docs/postmortem.md names its keys.
nlohmann::json watch_json(const WatchReport& report);

// Memory by process over time, the limit, what was killed when, memory pressure: an SVG that needs nothing else, for
// light and dark pages.
std::string watch_svg(const WatchReport& report);

}  // namespace headroom
