// Modulated deformable convolution (DCNv2), 3 x 3, stride 1, as large as its input. Tap k = 3 * row + column of
// deformable group g sees input channels [g * in / G, (g + 1) * in / G) at
//   (y - 1 + k / 3 + offset[18 g + 2 k], x - 1 + k % 3 + offset[18 g + 2 k + 1])
// between the four pixels around it (zeros outside), times mask[9 g + k]. The weight has in / W channels: output
// channels are in W parts, part i sees the i-th part of the input alone.
#pragma once

#include <torch/torch.h>

namespace headroom {

// x [n, in, y, x], offset [n, 18 G, y, x], mask [n, 9 G, y, x], weight [out, in / W, 3, 3], bias [out].
// In LibTorch's own operations: the reference of every other way to compute it, and what devices other than the CPU
// use.
at::Tensor deform_conv_gather(const at::Tensor& x, const at::Tensor& offset, const at::Tensor& mask,
                              const at::Tensor& weight, const at::Tensor& bias);

// The same from raw offsets [n, 27 G, y, x] and the flows to each of the in / W sources, [n, 2 W, y, x] in (x, y): a
// tap lies `reach` * tanh(raw) beside the flow of its group's source, and counts the logistic function of the last 9 G.
// Nothing but the arguments is kept for backward. On the CPU, where W divides G, in kernels of our own, in the type of
// the weight; elsewhere by deform_conv_gather().
at::Tensor deform_conv_along(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow,
                             const at::Tensor& weight, const at::Tensor& bias, double reach);
// Always by deform_conv_gather().
at::Tensor deform_conv_along_gather(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow,
                                    const at::Tensor& weight, const at::Tensor& bias, double reach);

}  // namespace headroom
