#include "warp_sampling.hpp"

#include <algorithm>

#include "corners.hpp"

namespace headroom {
namespace {

template <class T>
HEADROOM_KERNEL_BODY bool find_source(const WarpImage<T>& image, int64_t pixel, Corners<T>& corners) {
  const T* const flow = image.flow + 2 * pixel;
  return find_corners<T>(ImageSize{image.rows, image.columns, image.channels},
                         static_cast<T>(pixel / image.columns) + flow[1],
                         static_cast<T>(pixel % image.columns) + flow[0], corners);
}

template <class T>
struct Warp {
  static HEADROOM_KERNEL_BODY void run(const WarpImage<T>& image, int64_t begin, int64_t end, T* out) {
    Corners<T> corners;
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      T* const to = out + pixel * image.channels;
      if (!find_source(image, pixel, corners)) {
        std::fill_n(to, image.channels, T(0));
        continue;
      }
      const T right = corners.right, left = T(1) - right, below = corners.below, above = T(1) - below;
      const T w0 = above * left * corners.inside[0], w1 = above * right * corners.inside[1],
              w2 = below * left * corners.inside[2], w3 = below * right * corners.inside[3];
      const T *const p0 = image.x + corners.at[0], *const p1 = image.x + corners.at[1],
                     *const p2 = image.x + corners.at[2], *const p3 = image.x + corners.at[3];
      for (int64_t c = 0; c < image.channels; ++c) to[c] = w0 * p0[c] + w1 * p1[c] + w2 * p2[c] + w3 * p3[c];
    }
  }
};

template <class T>
struct WarpBackward {
  static HEADROOM_KERNEL_BODY void run(const WarpImage<T>& image, int64_t first, int64_t last, const T* gradient, T* x,
                                       T* flow) {
    Corners<T> corners;
    for (int64_t pixel = 0; pixel < image.rows * image.columns; ++pixel) {
      T* const to_flow = flow + 2 * pixel;
      to_flow[0] = to_flow[1] = 0;
      if (!find_source(image, pixel, corners)) continue;
      const T right = corners.right, left = T(1) - right, below = corners.below, above = T(1) - below;
      const T share[4] = {above * left, above * right, below * left, below * right};
      const T* const d = gradient + pixel * image.channels;
      T seen[4];
      for (int corner = 0; corner < 4; ++corner) {
        const T* const p = image.x + corners.at[corner];
        T* const to = x + corners.at[corner];
        const T weight = share[corner] * corners.inside[corner];
        T sum = 0;
        for (int64_t c = first; c < last; ++c) sum += d[c] * p[c];
        for (int64_t c = first; c < last; ++c) to[c] += weight * d[c];
        seen[corner] = sum * corners.inside[corner];
      }
      to_flow[0] = above * (seen[1] - seen[0]) + below * (seen[3] - seen[2]);
      to_flow[1] = left * (seen[2] - seen[0]) + right * (seen[3] - seen[1]);
    }
  }
};

template <class T>
void backward(const WarpImage<T>& image, int64_t first, int64_t last, const T* above, T* x, T* flow) {
  sdk::run_kernel<WarpBackward<T>, const WarpImage<T>&>(image, first, last, above, x, flow);
}

}  // namespace

void warp_pixels(const WarpImage<float>& image, int64_t begin, int64_t end, float* out) {
  sdk::run_kernel<Warp<float>, const WarpImage<float>&>(image, begin, end, out);
}
void warp_pixels(const WarpImage<double>& image, int64_t begin, int64_t end, double* out) {
  sdk::run_kernel<Warp<double>, const WarpImage<double>&>(image, begin, end, out);
}
void warp_pixels_backward(const WarpImage<float>& image, int64_t first, int64_t last, const float* above, float* x,
                          float* flow) {
  backward(image, first, last, above, x, flow);
}
void warp_pixels_backward(const WarpImage<double>& image, int64_t first, int64_t last, const double* above, double* x,
                          double* flow) {
  backward(image, first, last, above, x, flow);
}

}  // namespace headroom
