// The services that need nothing but the process itself: log, rng, cancel, memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "headroom/abi.h"

namespace headroom {

// Every hr_host a plugin sees is the first member of one of these.
struct PluginHost {
  hr_host native;
  std::string plugin_id;
};

// By id; the tables live for ever.
std::map<std::string, const void*, std::less<>> built_in_services();

// Bytes plugins said they hold, and scratch memory they have, by "<plugin id>" or "<plugin id>/<owner>". [any]
std::map<std::string, int64_t> plugin_memory();

}  // namespace headroom
