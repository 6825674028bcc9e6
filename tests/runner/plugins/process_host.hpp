// The host as plugins see it where no run is.
#pragma once

#include "plugins/session.hpp"

namespace headroom {

inline const hr_host* host_for(const char* plugin_id) { return Session::of_process()->host_for(plugin_id); }
inline const hr_host* host() { return host_for("plugin"); }

}  // namespace headroom
