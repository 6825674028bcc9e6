#include "record/png.hpp"

#include <array>
#include <stdexcept>
#include <string_view>
#include <zlib.h>

namespace headroom {

namespace {

// PNG's numbers are big-endian (PNG specification, 7.1).
void append_number(std::string& bytes, uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
}

// The length is of the content alone, the checksum of kind and content.
void append_chunk(std::string& bytes, std::string_view kind, std::string_view content) {
  append_number(bytes, static_cast<uint32_t>(content.size()));
  const std::string checked = std::string(kind).append(content);
  bytes += checked;
  append_number(bytes,
                static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size())));
}

std::string compressed(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(result.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                bytes.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  result.resize(size);
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    // Bytes beyond the end count as 0, and digits that they alone would make are written as = (RFC 4648).
    const auto byte = [&](size_t at) { return at < bytes.size() ? static_cast<uint8_t>(bytes[at]) : 0u; };
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (size_t digit = 0; digit < 4; ++digit)
      text += i + digit <= bytes.size() ? digits[group >> (18 - 6 * digit) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string png_bytes(std::span<const uint8_t> pixels, uint32_t width, uint32_t height, uint32_t colours) {
  std::string bytes = "\x89PNG\r\n\x1a\n", header, rows;
  append_number(header, width);
  append_number(header, height);
  header += '\x08';                              // bits a sample
  header += colours == 3 ? '\x02' : '\0';        // RGB or grey
  header.append(3, '\0');                        // deflate, filtered by row, not interlaced
  for (uint32_t row = 0; row < height; ++row) {  // unfiltered
    const auto line = pixels.subspan(size_t{row} * width * colours, size_t{width} * colours);
    // Every row begins with the number of its filter; 0: none.
    rows += '\0';
    rows.append(line.begin(), line.end());
  }
  append_chunk(bytes, "IHDR", header);
  append_chunk(bytes, "IDAT", compressed(rows));
  append_chunk(bytes, "IEND", "");
  return bytes;
}

std::string png_data_uri(std::span<const uint8_t> pixels, uint32_t width, uint32_t height, uint32_t colours) {
  return "data:image/png;base64," + base64(png_bytes(pixels, width, height, colours));
}

}  // namespace headroom
