#include "deform_conv.hpp"

#include <vector>

#include "deform_sampling.hpp"

namespace headroom {
namespace {

// One coordinate of every tap: where the plain convolution would look, and how far beside it. Both [G, 9, y, x].
at::Tensor tap_places(const at::Tensor& offset, const at::Tensor& taps, const at::Tensor& pixels) {
  return taps.view({1, kTaps, 1, 1}) + pixels - 1 + offset;
}

// The values of x [G, channels, y * x] at whole pixels, zero outside: [G, channels, 9 * y * x].
at::Tensor pixels_at(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& columns, int64_t height,
                     int64_t width) {
  const at::Tensor inside = rows.ge(0) & rows.lt(height) & columns.ge(0) & columns.lt(width);
  const at::Tensor index = rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1);
  const at::Tensor flat = index.to(at::kLong).view({x.size(0), 1, -1}).expand({-1, x.size(1), -1});
  return x.gather(2, flat) * inside.view({x.size(0), 1, -1});
}

// What the taps of one image see, [in, 9 * y * x].
at::Tensor columns_of(const at::Tensor& image, const at::Tensor& offset, const at::Tensor& mask) {
  const int64_t height = image.size(1), width = image.size(2), groups = mask.size(0) / kTaps;
  const auto options = offset.options().requires_grad(false);
  const at::Tensor by_axis = offset.view({groups, kTaps, 2, height, width}), tap = at::arange(kTaps, options);
  const at::Tensor y = tap_places(by_axis.select(2, 0), tap.div(3, "floor"), at::arange(height, options).unsqueeze(1));
  const at::Tensor x = tap_places(by_axis.select(2, 1), tap.remainder(3), at::arange(width, options));
  const at::Tensor top = y.floor().detach(), left = x.floor().detach(), below = y - top, right = x - left;
  const at::Tensor grouped = image.reshape({groups, -1, height * width});
  at::Tensor seen;
  for (const int64_t dy : {0, 1}) {
    for (const int64_t dx : {0, 1}) {
      const at::Tensor share = (dy == 0 ? 1 - below : below) * (dx == 0 ? 1 - right : right);
      const at::Tensor part = pixels_at(grouped, top + dy, left + dx, height, width) * share.view({groups, 1, -1});
      seen = seen.defined() ? seen + part : part;
    }
  }
  return (seen * mask.reshape({groups, 1, -1})).view({image.size(0), -1});
}

}  // namespace

at::Tensor deform_conv_gather(const at::Tensor& x, const at::Tensor& offset, const at::Tensor& mask,
                              const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t outputs = weight.size(0), parts = x.size(1) / weight.size(1), pixels = x.size(2) * x.size(3);
  const at::Tensor by_part = weight.reshape({parts, outputs / parts, -1});
  std::vector<at::Tensor> images;
  for (int64_t i = 0; i < x.size(0); ++i) {  // one image's columns at a time
    const at::Tensor columns = columns_of(x[i], offset[i].contiguous(), mask[i]).view({parts, -1, pixels});
    images.push_back(at::bmm(by_part, columns).view({outputs, x.size(2), x.size(3)}) + bias.view({-1, 1, 1}));
  }
  return at::stack(images);
}

at::Tensor deform_conv_along_gather(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow,
                                    const at::Tensor& weight, const at::Tensor& bias, double reach) {
  const int64_t taps = raw.size(1) / 3, sources = flow.size(1) / 2;
  // Offsets alternate (y, x), flows are (x, y).
  const at::Tensor beside = raw.narrow(1, 0, 2 * taps).tanh().mul(reach).unflatten(1, {sources, -1, 2});
  const at::Tensor offset = (beside + flow.unflatten(1, {sources, 1, 2}).flip(3)).flatten(1, 3);
  return deform_conv_gather(x, offset, raw.narrow(1, 2 * taps, taps).sigmoid(), weight, bias);
}

}  // namespace headroom
