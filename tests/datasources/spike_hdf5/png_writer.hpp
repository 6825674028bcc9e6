// PNG files of any kind, for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <png.h>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "spike_hdf5/box.hpp"

namespace headroom {

struct PngKind {
  int colour = PNG_COLOR_TYPE_RGB, bits = 8;
  bool interlaced = false;
};

// `rows`: as the kind has them, [height][bytes of a row].
inline std::vector<std::byte> encode_png(const std::vector<uint8_t>& rows, const spike_hdf5::Size& size,
                                         const PngKind& kind = {}) {
  std::vector<std::byte> file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto append = [](png_structp from, png_bytep bytes, std::size_t count) {
    auto* to = static_cast<std::vector<std::byte>*>(png_get_io_ptr(from));
    to->insert(to->end(), reinterpret_cast<std::byte*>(bytes), reinterpret_cast<std::byte*>(bytes) + count);
  };
  png_set_write_fn(png, &file, append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(size.width), static_cast<png_uint_32>(size.height), kind.bits,
               kind.colour, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (kind.colour == PNG_COLOR_TYPE_PALETTE) {
    const png_color palette[] = {{1, 2, 3}, {40, 50, 60}, {100, 110, 120}, {250, 251, 252}};
    png_set_PLTE(png, info, palette, 4);
  }
  png_write_info(png, info);
  std::vector<png_bytep> lines;
  for (uint64_t y = 0; y < size.height; ++y)
    lines.push_back(const_cast<png_bytep>(rows.data()) + y * (rows.size() / size.height));
  png_write_image(png, lines.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

inline void write_bytes(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace headroom
