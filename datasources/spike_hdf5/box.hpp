// Sizes of frames and parts of them, in pixels.
#pragma once

#include <cstdint>
#include <string>

namespace spike_hdf5 {

struct Size {
  uint64_t height = 0, width = 0;
  bool operator==(const Size&) const = default;
  uint64_t pixels() const { return height * width; }
};

// "720x1280"
inline std::string shown(const Size& size) { return std::to_string(size.height) + "x" + std::to_string(size.width); }

struct Box {
  uint64_t top = 0, left = 0;
  Size size;
};

}  // namespace spike_hdf5
