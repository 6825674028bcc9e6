// The shape of a convolution over time with a stride. Torch-free.
#pragma once

#include <cstdint>

namespace headroom {

// Of one sample, x [time, channels], y [outputs(), out]. A frame is `stride` steps of x, seen as one.
struct TimeShape {
  int64_t time, channels, stride, kernel, out;

  int64_t outputs() const { return (time - kernel) / stride + 1; }
  int64_t taps() const { return (kernel + stride - 1) / stride; }  // frames that an output reads
  int64_t frame() const { return stride * channels; }
};

}  // namespace headroom
