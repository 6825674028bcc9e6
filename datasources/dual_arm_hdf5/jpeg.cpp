#include "jpeg.hpp"

#include <cstdio>
#include <string>
// libjpeg's header needs the two above it.
#include <csetjmp>
#include <jpeglib.h>

#include "headroom/sdk/planes.hpp"

namespace dual_arm_hdf5 {

struct JpegDecoder::State {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  std::jmp_buf failed{};
  char reason[JMSG_LENGTH_MAX] = {};
  std::vector<uint8_t> line;

  static State& of(j_common_ptr common) { return *static_cast<State*>(common->client_data); }

  [[noreturn]] static void fail(j_common_ptr common) {
    State& state = of(common);
    state.errors.format_message(common, state.reason);
    std::longjmp(state.failed, 1);
  }
  static void warn(j_common_ptr common, int level) {
    if (level < 0) fail(common);
  }
  static void print(j_common_ptr) {}

  ~State() { jpeg_destroy_decompress(&decoder); }

  // Nothing with a destructor may live in the functions that setjmp returns to.
  bool create() {
    decoder.err = jpeg_std_error(&errors);
    decoder.client_data = this;
    errors.error_exit = &State::fail;
    errors.emit_message = &State::warn;
    errors.output_message = &State::print;
    if (setjmp(failed) != 0) return false;
    jpeg_create_decompress(&decoder);
    return true;
  }

  bool read_header(const uint8_t* bytes, unsigned long count, FrameSize* size) {
    if (setjmp(failed) != 0) {
      jpeg_abort_decompress(&decoder);
      return false;
    }
    jpeg_mem_src(&decoder, bytes, count);
    jpeg_read_header(&decoder, TRUE);
    *size = {decoder.image_height, decoder.image_width};
    return true;
  }

  // After read_header(). `pixels`: room for one line.
  bool read_lines(uint8_t* pixels, uint8_t* planes, std::size_t plane_stride) {
    if (setjmp(failed) != 0) {
      jpeg_abort_decompress(&decoder);
      return false;
    }
    decoder.out_color_space = JCS_EXT_BGR;
    jpeg_start_decompress(&decoder);
    while (decoder.output_scanline < decoder.output_height) {
      const std::size_t first = std::size_t{decoder.output_scanline} * decoder.output_width;
      jpeg_read_scanlines(&decoder, &pixels, 1);
      headroom::sdk::split_planes(pixels, decoder.output_width, planes + first, plane_stride);
    }
    jpeg_finish_decompress(&decoder);
    return true;
  }

  [[noreturn]] void throw_bad() const { throw BadJpeg(std::string("is no whole JPEG (") + reason + ")"); }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  if (!state_->create()) throw std::runtime_error(std::string("libjpeg cannot be used: ") + state_->reason);
}
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;
JpegDecoder::~JpegDecoder() = default;

FrameSize JpegDecoder::size(std::span<const uint8_t> row) {
  FrameSize size;
  if (!state_->read_header(row.data(), row.size(), &size)) state_->throw_bad();
  jpeg_abort_decompress(&state_->decoder);
  return size;
}

void JpegDecoder::decode(std::span<const uint8_t> row, const FrameSize& expected, std::span<uint8_t> planes) {
  FrameSize found;
  if (!state_->read_header(row.data(), row.size(), &found)) state_->throw_bad();
  if (found != expected) {
    jpeg_abort_decompress(&state_->decoder);
    const auto text = [](const FrameSize& size) {
      return std::to_string(size.height) + "x" + std::to_string(size.width);
    };
    throw BadJpeg("is " + text(found) + ", other frames are " + text(expected));
  }
  state_->line.resize(3 * found.width);
  if (!state_->read_lines(state_->line.data(), planes.data(), found.height * found.width)) state_->throw_bad();
}

}  // namespace dual_arm_hdf5
