// Pictures as PNG: files, and small ones as a page embeds them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace headroom {

// The content of a PNG file. `pixels`: rows from the top, `colours` bytes for each pixel: 1 grey, 3 red, green, blue.
// REQUIRES: width * height * colours bytes, none of them 0.
std::string png_bytes(std::span<const uint8_t> pixels, uint32_t width, uint32_t height, uint32_t colours);

// The same as "data:image/png;base64,...".
std::string png_data_uri(std::span<const uint8_t> pixels, uint32_t width, uint32_t height, uint32_t colours);

}  // namespace headroom
