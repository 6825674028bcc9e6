// data.pin_memory: batches in page-locked memory, out of which a GPU copies by itself.
#pragma once

namespace headroom {

// [control] Slots that loaders make from here on are locked by the CUDA runtime that LibTorch has brought into the
// process. False where there is none. One that cannot be locked stays as it is.
bool lock_pages_of_batches();

}  // namespace headroom
