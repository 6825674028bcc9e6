// The checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom {

uint32_t crc32c(std::string_view bytes);         // Castagnoli: "123456789" -> 0xe3069283
uint32_t masked_crc32c(std::string_view bytes);  // rotated and shifted, as TFRecord stores it

}  // namespace headroom
