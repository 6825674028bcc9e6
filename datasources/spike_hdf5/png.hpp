// Frames in PNG files: 8 bits of red, green and blue; grey, palettes, transparency and 16 bits are brought to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "box.hpp"

namespace spike_hdf5 {

// What is wrong with a file, as a clause: "is no whole PNG (Read Error)".
struct BadPng : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Size png_size(std::span<const std::byte> file);

// planes[3][height][width] of `box`. BadPng where the frame is not of `expected` size.
void decode_png(std::span<const std::byte> file, const Size& expected, const Box& box, uint8_t* planes);

}  // namespace spike_hdf5
