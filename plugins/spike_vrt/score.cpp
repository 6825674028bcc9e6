#include "score.hpp"

namespace headroom {
namespace {

constexpr double kPeak = 255.0;
constexpr int64_t kWindow = 11;

// Gaussian means of [n, 1, y, x], rows and columns one after the other.
at::Tensor blurred(const at::Tensor& images) {
  const at::Tensor place = at::arange(kWindow, images.options()) - static_cast<double>(kWindow / 2);
  const at::Tensor weight = (place.square() / (-2.0 * 1.5 * 1.5)).exp();
  const at::Tensor window = weight / weight.sum();
  return at::conv2d(at::conv2d(images, window.view({1, 1, 1, -1})), window.view({1, 1, -1, 1}));
}

}  // namespace

at::Tensor charbonnier_sum(const at::Tensor& restored, const at::Tensor& sharp, double eps) {
  return ((restored - sharp).square() + eps).sqrt().sum() / static_cast<double>(restored.numel() / restored.size(0));
}

at::Tensor as_stored(const at::Tensor& images) { return images.to(at::kDouble).clamp(0.0, 1.0).mul_(kPeak).round_(); }

at::Tensor psnr(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor error = (a - b).square().mean({1, 2, 3}).clamp_min(kPeak * kPeak * 1e-10);
  return 10.0 * (kPeak * kPeak / error).log10();
}

at::Tensor ssim(const at::Tensor& a, const at::Tensor& b) {
  constexpr double c1 = 0.01 * 0.01 * kPeak * kPeak, c2 = 0.03 * 0.03 * kPeak * kPeak;
  const int64_t channels = a.size(1);
  const at::Tensor x = a.flatten(0, 1).unsqueeze(1), y = b.flatten(0, 1).unsqueeze(1);
  const at::Tensor mean_x = blurred(x), mean_y = blurred(y), product = mean_x * mean_y;
  const at::Tensor square_x = mean_x.square(), square_y = mean_y.square();
  const at::Tensor var_x = blurred(x.square()) - square_x, var_y = blurred(y.square()) - square_y,
                   covariance = blurred(x * y) - product;
  const at::Tensor map =
      (2.0 * product + c1) * (2.0 * covariance + c2) / ((square_x + square_y + c1) * (var_x + var_y + c2));
  return map.mean({1, 2, 3}).view({-1, channels}).mean(1);
}

}  // namespace headroom
