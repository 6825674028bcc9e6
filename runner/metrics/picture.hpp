// Tensors as pictures.
#pragma once

#include <optional>
#include <string>
#include <torch/torch.h>

namespace headroom {

// The values shown as black and as white.
struct PictureRange {
  double low = 0, high = 1;
};

// A sample as a picture [colours, height, width], float, of at most 192 pixels a side. Of a clip it is the picture in
// the middle. nullopt where the shape is neither picture nor clip.
std::optional<at::Tensor> picture_of(at::Tensor sample);

// 0 to 1 or 0 to 255 where the values fit, else their own range.
PictureRange range_of(const at::Tensor& picture);

// uint8 [height, width, colours], contiguous, on the CPU. `picture`: [colours, height, width].
at::Tensor pixels_of(const at::Tensor& picture, const PictureRange& range);

// A data URI for a page.
std::string shown_picture(const at::Tensor& picture, const PictureRange& range);

}  // namespace headroom
