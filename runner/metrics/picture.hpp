// Tensors that people would rather look at than read.
#pragma once

#include <optional>
#include <string>
#include <torch/torch.h>

namespace headroom {

// What is black and what is white.
struct PictureRange {
  double low = 0, high = 1;
};

// [colours, height, width] in float where the sample's shape says picture, or clip of pictures: then the one in the
// middle. At most 192 pixels a side.
std::optional<at::Tensor> picture_of(at::Tensor sample);

// 0 and 1, 0 and 255, else what is in it.
PictureRange range_of(const at::Tensor& picture);

// uint8 [height, width, colours], contiguous, on the CPU. `picture`: [colours, height, width].
at::Tensor pixels_of(const at::Tensor& picture, const PictureRange& range);

// As a page embeds it.
std::string shown_picture(const at::Tensor& picture, const PictureRange& range);

}  // namespace headroom
