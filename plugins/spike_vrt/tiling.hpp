// A clip restored in one run, padded where it must be, or in tiles.
#pragma once

#include <functional>
#include <torch/torch.h>

#include "tiles.hpp"
#include "vrt_shape.hpp"

namespace headroom {

// [n, frame, channel, y, x] -> [n, frame, 3, y, x]
using Restore = std::function<at::Tensor(const at::Tensor& clip)>;

// The clip's end mirrored up to multiples of `unit`, restored and cut off again.
at::Tensor restore_padded(const at::Tensor& clip, const Extent& unit, const Restore& restore);

// Overlapping frames are averaged; of overlapping pixels, each tile gives those nearer to its middle. What is not
// tiled is padded to whole windows.
at::Tensor restore_tiled(const at::Tensor& clip, const Tiles& tiles, const Extent& window, const Restore& restore);

}  // namespace headroom
