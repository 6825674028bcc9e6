// The services that need nothing but the process itself: log, rng, cancel, memory.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace headroom {

// By id; the tables live for ever.
std::map<std::string, const void*, std::less<>> built_in_services();

}  // namespace headroom
