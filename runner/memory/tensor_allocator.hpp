// The CPU allocator that replaces LibTorch's: every tensor comes from the arena, is on the ledger under the owner of
// its scope, and never takes the process above its limit. On a GPU the same functions use the device's own caching
// allocator.
#pragma once

#include <c10/core/Device.h>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/process_memory.hpp"

namespace headroom {

// Call it first in main, before any tensor exists: c10::SetCPUAllocator. Later calls do nothing. For a request that
// would take U above the limit (memory/budget.hpp), the pressure ladder first releases memory; then it is refused with
// c10::OutOfMemoryError. [control]
void install_tensor_allocator();

// What the exception of a refused tensor says; nullptr: the runner's own text, which whoever catches it explains. For
// processes whose users see it as it is. `sentence` gets the bytes that were asked for, and is called from any thread
// that allocates. [control]
void set_refusal_sentence(std::string (*sentence)(int64_t bytes));

// `empty_cache`: returns free memory to the system, or to the device. The result is its size in bytes. [any]
int64_t purge_tensor_memory(c10::Device device = c10::kCPU);

// The memory of a device with an index; nullopt on the CPU. [any]
std::optional<DeviceMemory> read_device_memory(c10::Device device);

// Returns freed memory of malloc and new to the system too. [any]
void purge_heap();

// For tests and probes.
int64_t tensor_allocations();  // since the start
// Makes the allocation after `skip` others fail once, as if memory had run out; below 0: none fails.
void fail_tensor_allocation(int64_t skip);

}  // namespace headroom
