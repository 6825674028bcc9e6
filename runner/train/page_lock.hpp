// data.pin_memory: batches in page-locked memory, which a GPU copies without the CPU.
#pragma once

#include <optional>

#include "data/slots.hpp"

namespace headroom {

// By the CUDA runtime that LibTorch loaded; nullopt where there is none. A slot that cannot be locked is used unlocked.
// [control]
std::optional<PageLock> cuda_page_lock();

}  // namespace headroom
