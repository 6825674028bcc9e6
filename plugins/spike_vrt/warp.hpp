// Images moved along a flow. x [n, channel, y, x]; flow [n, 2, y, x], pixels to the right and down: what lands at a
// place comes from place + flow.
#pragma once

#include <torch/torch.h>

namespace headroom {

enum class Outside { zeros, border };  // what is seen beyond the image

// Bilinear; differentiable in both.
at::Tensor warp(const at::Tensor& x, const at::Tensor& flow, Outside outside = Outside::zeros);

// The four pixels around where the flow points, [n, 4 * channel, y, x]: (floor x, floor y), (floor x, ceil y),
// (ceil x, floor y), (ceil x, ceil y), zeros outside. No gradient reaches the flow.
at::Tensor warp_nearest4(const at::Tensor& x, const at::Tensor& flow);

}  // namespace headroom
