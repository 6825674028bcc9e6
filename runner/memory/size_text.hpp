// Sizes for people to read.
#pragma once

#include <cstdint>
#include <string>

namespace headroom {

// "3.1 GiB", "812.0 MiB", "17 B": rounded, in units that memory.limit understands.
std::string size_text(int64_t bytes);

}  // namespace headroom
