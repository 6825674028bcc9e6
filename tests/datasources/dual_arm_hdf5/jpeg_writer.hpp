// JPEG frames as OpenCV writes an RGB array: its first channel becomes the JPEG's blue.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
// libjpeg's header needs <cstdio> above it.
#include <jpeglib.h>

namespace headroom {

inline std::vector<uint8_t> encode_as_opencv(const std::vector<uint8_t>& pixels, uint64_t height, uint64_t width,
                                             int quality = 95, bool progressive = false) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&encoder, &bytes, &count);
  encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.image_height = static_cast<JDIMENSION>(height);
  encoder.input_components = 3;
  encoder.in_color_space = JCS_EXT_BGR;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, quality, TRUE);
  if (progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    auto* line = const_cast<uint8_t*>(pixels.data()) + std::size_t{encoder.next_scanline} * width * 3;
    jpeg_write_scanlines(&encoder, &line, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::vector<uint8_t> result(bytes, bytes + count);
  std::free(bytes);
  return result;
}

}  // namespace headroom
