// Convolutions over time with a stride by F(4, r) of Winograd's minimal filtering (Winograd, "Arithmetic Complexity of
// Computations", 1980), for several instruction sets (sdk/cpu_kernel.hpp). Torch-free; float32.
//
// A frame is `stride` steps of x, seen as one step of stride * channels numbers: over frames the convolution has stride
// 1 and r = taps() taps. A tile is 4 outputs, from r + 3 frames. Transformed, it has r + 3 places; each is a product
// over the numbers of a frame, where 4 * r would be needed otherwise. Outputs and frames past the end count as zero.
#pragma once

#include <cstdint>

#include "time_shape.hpp"

namespace headroom {

struct WinogradShape : TimeShape {
  int64_t places() const { return taps() + 3; }
  int64_t tiles() const { return (outputs() + 3) / 4; }
  int64_t frame_groups() const { return (time + 4 * stride - 1) / (4 * stride); }  // 4 frames each, as a tile's first
};

// Whether there are kernels for this shape on this processor, and fewer products by a third than without them.
bool has_winograd(const WinogradShape& shape);

// Weights [out, channels, kernel] -> [places][out][frame()], of output channels [first, last). [any]
void transform_weight(const WinogradShape& shape, const float* weight, int64_t first, int64_t last, float* to);
// The gradient of those -> that of the weights.
void transform_weight_gradient(const WinogradShape& shape, const float* from, int64_t first, int64_t last,
                               float* to_weight);

// Below, one sample's tiles [first, last); transformed tiles are [places][tile][...], the places `to_next` numbers
// apart. [any]

// x -> [places][tile][frame()]
void transform_input(const WinogradShape& shape, const float* x, int64_t first, int64_t last, float* to,
                     int64_t to_next);
// [places][tile][out] -> y, with bias [out] added
void transform_output(const WinogradShape& shape, const float* from, int64_t to_next, const float* bias, int64_t first,
                      int64_t last, float* y);
// The gradient of y -> that of [places][tile][out]
void transform_output_gradient(const WinogradShape& shape, const float* to_y, int64_t first, int64_t last, float* to,
                               int64_t to_next);
// The gradient of [places][tile][frame()] -> that of x, of frame groups [first, last)
void transform_input_gradient(const WinogradShape& shape, const float* from, int64_t to_next, int64_t first,
                              int64_t last, float* to_x);

}  // namespace headroom
