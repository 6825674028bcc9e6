// memory.device_limit: how much the caching allocator of a GPU may hold for this process.
#pragma once

#include <c10/core/Device.h>
#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

struct DeviceRoom {
  int64_t free_bytes = 0, total_bytes = 0;
};

// By the CUDA runtime that LibTorch loaded; nullopt: there is none, or it does not tell. [any]
std::optional<DeviceRoom> read_device_room(c10::Device device);

struct DeviceLimit {
  std::optional<int64_t> bytes;  // nullopt: off; at least 1, and at most all that the device has
  std::string rule;              // one line: what decided, with the figures
};

// `wanted` is memory.device_limit as config/ resolves it: "auto", "off", "80%", or bytes in digits.
//   "auto": 0.9 of what is free; the CUDA context, kernels and communication take the rest
//   "80%":  of all that the device has
// Error(bad_input) for any other text. [any]
DeviceLimit decide_device_limit(const std::string& wanted, const DeviceRoom& room);

// Has the allocators of devices keep to the limit that `wanted` means in this room: beyond it they first release what
// they keep, then throw c10::OutOfMemoryError. "auto" is off where that cannot be had; for anything else it is
// Error(bad_input). [control] before LibTorch's first use of a device: its allocator reads the limit when it is made.
DeviceLimit limit_device_memory(const std::optional<DeviceRoom>& room, const std::string& wanted);

}  // namespace headroom
