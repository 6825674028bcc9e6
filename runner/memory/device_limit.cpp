#include "memory/device_limit.hpp"

#include <algorithm>
#include <array>
#include <c10/core/AllocatorConfig.h>
#include <charconv>
#include <dlfcn.h>

#include "error.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr std::string_view fraction_key = "per_process_memory_fraction";

template <class Number>
bool reads_as(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

DeviceLimit limit_of(int64_t bytes, std::string rule, const DeviceRoom& room) {
  if (bytes > room.total_bytes) {
    bytes = room.total_bytes;
    rule += "; held to the " + size_text(room.total_bytes) + " that it has";
  } else if (bytes > room.free_bytes) {
    rule += "; above the " + size_text(room.free_bytes) + " that are free on it now";
  }
  return {std::max<int64_t>(bytes, 1), std::move(rule)};
}

// LibTorch reads the fraction together with what the user has set in PYTORCH_ALLOC_CONF, which has to stay.
std::string settings_with(double fraction) {
  std::string settings = c10::CachingAllocator::getAllocatorSettings();
  if (const size_t key = settings.find(fraction_key); key != std::string::npos) {
    const size_t behind = settings.find(',', key);
    settings.erase(key, behind == std::string::npos ? std::string::npos : behind + 1 - key);
  }
  if (!settings.empty() && settings.back() != ',') settings += ',';
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), fraction, std::chars_format::fixed, 12).ptr;
  return settings.append(fraction_key).append(":").append(digits.data(), end);
}

// "": it is set. Otherwise why not.
std::string set_fraction(double fraction) {
  if (!c10::CachingAllocator::AcceleratorAllocatorConfig::getKeys().contains(std::string(fraction_key)))
    return "this LibTorch can set no limit on a device";
  try {
    c10::CachingAllocator::setAllocatorSettings(settings_with(fraction));
    return "";
  } catch (const c10::Error& problem) {
    return "LibTorch refused to set it: " + std::string(problem.what_without_backtrace());
  }
}

}  // namespace

// The functions are as cuda_runtime_api.h declares them; looked up, so that a build against LibTorch without CUDA is
// the same code.
std::optional<DeviceRoom> read_device_room(c10::Device device) {
  const auto set_device = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "cudaSetDevice"));
  const auto memory_info = reinterpret_cast<int (*)(size_t*, size_t*)>(dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
  size_t free = 0, total = 0;
  if (set_device == nullptr || memory_info == nullptr || set_device(device.index()) != 0 ||
      memory_info(&free, &total) != 0 || total == 0)
    return std::nullopt;
  return DeviceRoom{static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

DeviceLimit decide_device_limit(const std::string& wanted, const DeviceRoom& room) {
  if (wanted == "off") return {std::nullopt, "off"};
  if (wanted == "auto") {
    return {std::max<int64_t>(room.free_bytes - room.free_bytes / 10, 1),
            "0.9 of the " + size_text(room.free_bytes) + " that are free of its " + size_text(room.total_bytes)};
  }
  double percent = 0;
  if (wanted.ends_with('%') && reads_as(std::string_view(wanted).substr(0, wanted.size() - 1), percent) &&
      percent <= 100) {
    return limit_of(static_cast<int64_t>(percent / 100 * static_cast<double>(room.total_bytes)),
                    wanted + " of its " + size_text(room.total_bytes), room);
  }
  int64_t bytes = 0;
  if (reads_as(std::string_view(wanted), bytes)) return limit_of(bytes, "as told", room);
  throw Error(
      Exit::bad_input, "memory",
      "memory.device_limit is \"" + wanted + "\"; it must be auto, off, a share such as 80% or a number of bytes");
}

DeviceLimit limit_device_memory(const std::optional<DeviceRoom>& room, const std::string& wanted) {
  DeviceLimit limit = decide_device_limit(wanted, room.value_or(DeviceRoom()));
  if (!limit.bytes) return limit;
  const std::string why_not =
      room ? set_fraction(static_cast<double>(*limit.bytes) / static_cast<double>(room->total_bytes))
           : "this LibTorch brings no CUDA runtime that tells how much memory the device has";
  if (why_not.empty()) return limit;
  if (wanted == "auto") return {std::nullopt, "off: " + why_not};
  throw Error(Exit::bad_input, "memory.device_limit", why_not + "; leave the key out, or set it to \"off\"");
}

}  // namespace headroom
