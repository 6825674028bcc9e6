// A thread's own cache of small blocks of the arena's (arena.hpp); without it every small tensor takes an arena's lock,
// and with the thread's default cache its blocks would come from, and go to, other arenas.
#pragma once

namespace headroom::arena {

// [any] What mallocx() and dallocx() are told: this thread's cache, which is made first where there is memory for it,
// or that there is none.
int thread_cache_flag();

// [any] Blocks of this thread's cache go back to the arenas. It is made again after some uses.
void drop_thread_cache();

}  // namespace headroom::arena
