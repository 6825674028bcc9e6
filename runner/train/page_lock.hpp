// data.pin_memory: batches in page-locked memory, which a GPU copies without the CPU.
#pragma once

namespace headroom {

// [control] From here on the CUDA runtime that LibTorch loaded locks the slots that loaders make. Returns false where
// there is no such runtime. A slot that cannot be locked is used unlocked.
bool lock_pages_of_batches();

}  // namespace headroom
