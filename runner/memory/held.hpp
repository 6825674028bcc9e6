// U: what this process itself holds, RssAnon + RssShmem, read so cheaply that an allocator may ask.
#pragma once

#include <cstdint>

namespace headroom {

// [any] Some 2 us; allocates nothing and takes no lock, so it may be called from inside an allocation. The kernel's
// counters lag by up to half a megabyte.
int64_t held_bytes();

}  // namespace headroom
