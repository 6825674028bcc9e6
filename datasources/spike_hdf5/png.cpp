#include "png.hpp"

#include <cstring>
#include <png.h>
#include <string>
#include <vector>

#include "headroom/sdk/planes.hpp"

namespace spike_hdf5 {

namespace {

// libpng reports through longjmp: nothing with a destructor may live in the functions that setjmp returns to.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> file) : left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &Decoder::fail, &Decoder::ignore);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, &Decoder::give);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  Size size() {
    if (!read_header()) throw_bad();
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
  }

  // After size().
  void read(const Box& box, uint8_t* planes) {
    if (png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE)
      throw BadPng("is interlaced; write it again without");
    if (!prepare()) throw_bad();
    std::vector<uint8_t> row(png_get_rowbytes(png_, info_));
    if (!read_rows(row.data(), box, planes)) throw_bad();
  }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    auto* self = static_cast<Decoder*>(png_get_error_ptr(png));
    std::strncpy(self->reason_, message, sizeof self->reason_ - 1);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void give(png_structp png, png_bytep to, std::size_t count) {
    auto* self = static_cast<Decoder*>(png_get_io_ptr(png));
    if (count > self->left_.size()) png_error(png, "it ends early");
    std::memcpy(to, self->left_.data(), count);
    self->left_ = self->left_.subspan(count);
  }

  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }
  bool prepare() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_gray_to_rgb(png_);
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  bool read_rows(uint8_t* row, const Box& box, uint8_t* planes) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    for (uint64_t y = 0; y < box.top + box.size.height; ++y) {
      png_read_row(png_, row, nullptr);
      if (y < box.top) continue;
      headroom::sdk::split_planes(row + 3 * box.left, box.size.width, planes + (y - box.top) * box.size.width,
                                  box.size.pixels());
    }
    return true;
  }
  [[noreturn]] void throw_bad() const { throw BadPng(std::string("is no whole PNG (") + reason_ + ")"); }

  std::span<const std::byte> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char reason_[128] = {};
};

}  // namespace

Size png_size(std::span<const std::byte> file) { return Decoder(file).size(); }

void decode_png(std::span<const std::byte> file, const Size& expected, const Box& box, uint8_t* planes) {
  Decoder decoder(file);
  const Size size = decoder.size();
  if (size != expected) throw BadPng("is " + shown(size) + ", the sequence's other frames are " + shown(expected));
  decoder.read(box, planes);
}

}  // namespace spike_hdf5
