// LibTorch's CPU allocator, ours: every tensor comes from the arena, is on the ledger under the owner of its scope, and
// never takes the process above its limit. On a GPU the same questions go to the device's own caching allocator.
#pragma once

#include <c10/core/Device.h>
#include <cstdint>
#include <optional>

#include "memory/process_memory.hpp"

namespace headroom {

// First thing in main, before any tensor exists: c10::SetCPUAllocator. Later calls do nothing. What would take U above
// the limit (memory/budget.hpp) is first asked back from the pressure ladder, then refused with c10::OutOfMemoryError.
// [control]
void install_tensor_allocator();

// `empty_cache`: what is free goes back to the system, or to the device. Returns the bytes. [any]
int64_t purge_tensor_memory(c10::Device device = c10::kCPU);

// Of a device with an index; nullopt on the CPU. [any]
std::optional<DeviceMemory> read_device_memory(c10::Device device);

// What malloc and new got back goes to the system too. [any]
void purge_heap();

// For tests and probes.
int64_t tensor_allocations();  // since the start
// The allocation that comes after `skip` others fails once, as if there were no memory; below 0: none does.
void fail_tensor_allocation(int64_t skip);

}  // namespace headroom
