// Position tensors that are computed, not learned.
#pragma once

#include <torch/torch.h>

namespace headroom {

// The 2-D sine map of a feature map: [2 * per_axis, height, width], first the channels of the rows, then of the
// columns. In float32 throughout, as the reference.
at::Tensor sine_map(int64_t height, int64_t width, int64_t per_axis);

// The 1-D sine table [1, length, width]: computed in float64, kept in float32.
at::Tensor sine_table(int64_t length, int64_t width);

}  // namespace headroom
