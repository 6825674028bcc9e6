// What a restored clip is worth.
#pragma once

#include <torch/torch.h>

namespace headroom {

// The mean of sqrt(difference^2 + eps) over each sample's elements, summed over the samples.
at::Tensor charbonnier_sum(const at::Tensor& restored, const at::Tensor& sharp, double eps);

// As they would be stored: [0, 1] cut off, rounded to 0 ... 255; float64.
at::Tensor as_stored(const at::Tensor& images);

// Of images [n, channel, y, x] that as_stored() made. Per image, [n].
// In dB, the error over all channels; two equal images have 100.
at::Tensor psnr(const at::Tensor& a, const at::Tensor& b);
// The mean over channels and over all places where an 11 x 11 Gaussian window (sigma 1.5) fits.
at::Tensor ssim(const at::Tensor& a, const at::Tensor& b);

}  // namespace headroom
