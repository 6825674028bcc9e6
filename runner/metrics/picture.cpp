#include "metrics/picture.hpp"

#include <algorithm>

#include "record/png.hpp"

namespace headroom {

namespace {

constexpr int64_t widest_picture = 192, least_side = 16;

}  // namespace

std::optional<at::Tensor> picture_of(at::Tensor sample) {
  if (sample.dim() == 4) sample = sample.select(0, sample.size(0) / 2);
  if (sample.dim() != 3) return std::nullopt;
  const auto are_colours = [&](int64_t axis) { return sample.size(axis) == 1 || sample.size(axis) == 3; };
  if (!are_colours(0) && are_colours(2)) sample = sample.permute({2, 0, 1});
  if (!are_colours(0) || sample.size(1) < least_side || sample.size(2) < least_side) return std::nullopt;
  sample = sample.to(at::kCPU, at::kFloat);
  const int64_t longest = std::max(sample.size(1), sample.size(2));
  if (longest <= widest_picture) return sample;
  const auto side = [&](int64_t pixels) { return std::max<int64_t>(1, pixels * widest_picture / longest); };
  return at::adaptive_avg_pool2d(sample, {side(sample.size(1)), side(sample.size(2))});
}

PictureRange range_of(const at::Tensor& picture) {
  const double low = picture.min().item<double>(), high = picture.max().item<double>();
  if (low >= -0.01 && high <= 1.01) return {};
  if (low >= 0 && high <= 255) return {0, 255};
  return {low, high > low ? high : low + 1};
}

at::Tensor pixels_of(const at::Tensor& picture, const PictureRange& range) {
  return picture.sub(range.low)
      .mul(255 / (range.high - range.low))
      .clamp(0, 255)
      .nan_to_num()
      .round()
      .permute({1, 2, 0})
      .to(at::kCPU, at::kByte)
      .contiguous();
}

std::string shown_picture(const at::Tensor& picture, const PictureRange& range) {
  const at::Tensor pixels = pixels_of(picture, range);
  return png_data_uri({pixels.const_data_ptr<uint8_t>(), static_cast<size_t>(pixels.numel())},
                      static_cast<uint32_t>(pixels.size(1)), static_cast<uint32_t>(pixels.size(0)),
                      static_cast<uint32_t>(pixels.size(2)));
}

}  // namespace headroom
