// What warp_features() does pixel by pixel, on the CPU. Torch-free.
#pragma once

#include <cstdint>

namespace headroom {

// One image, channels-last.
template <class T>
struct WarpImage {
  int64_t rows = 0, columns = 0, channels = 0;
  const T* x = nullptr;     // [y, x, channels]
  const T* flow = nullptr;  // [y, x, 2], (x, y)
};

// Pixels [begin, end) of out [y, x, channels].
void warp_pixels(const WarpImage<float>& image, int64_t begin, int64_t end, float* out);
void warp_pixels(const WarpImage<double>& image, int64_t begin, int64_t end, double* out);

// All pixels, channels [first, last): adds to x, writes flow [y, x, 2], these channels' part of it. Channels share
// nothing else: they may run at the same time.
void warp_pixels_backward(const WarpImage<float>& image, int64_t first, int64_t last, const float* above, float* x,
                          float* flow);
void warp_pixels_backward(const WarpImage<double>& image, int64_t first, int64_t last, const double* above, double* x,
                          double* flow);

}  // namespace headroom
