#include "deform_sampling.hpp"

#include "corners.hpp"
#include "headroom/sdk/vector_math.hpp"

namespace headroom {
namespace {

// One group's nine taps at one pixel.
template <class T>
struct Taps {
  T y[kTaps], x[kTaps], mask[kTaps];  // where, and how much it counts
  T slope_y[kTaps], slope_x[kTaps];   // of the place, over the raw offset
};

template <class T>
HEADROOM_KERNEL_BODY void place_taps(const DeformImage<T>& image, int64_t pixel, int64_t group, Taps<T>& taps) {
  const int64_t part = group / (image.groups / image.parts);
  const T* const raw = image.offset + pixel * 27 * image.groups;
  const T* const offset = raw + 2 * kTaps * group;
  const T* const mask = raw + 2 * kTaps * image.groups + kTaps * group;
  const T* const flow = image.flow + (pixel * image.parts + part) * 2;
  const int64_t row = pixel / image.columns, column = pixel % image.columns;
  T wave[2 * kTaps];
  for (int64_t i = 0; i < 2 * kTaps; ++i) wave[i] = sdk::vector_tanh(offset[i]);
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    // What is small is added first: the rounding of a place is that of one sum.
    taps.y[tap] = static_cast<T>(row + tap / 3 - 1) + (image.reach * wave[2 * tap] + flow[1]);
    taps.x[tap] = static_cast<T>(column + tap % 3 - 1) + (image.reach * wave[2 * tap + 1] + flow[0]);
    taps.slope_y[tap] = image.reach * (T(1) - wave[2 * tap] * wave[2 * tap]);
    taps.slope_x[tap] = image.reach * (T(1) - wave[2 * tap + 1] * wave[2 * tap + 1]);
    taps.mask[tap] = sdk::vector_logistic(mask[tap]);
  }
}

// Where the columns of a group's first channel lie in a pixel's, for tap 0; taps are channels / parts apart.
template <class T>
HEADROOM_KERNEL_BODY int64_t column_of(const DeformImage<T>& image, int64_t group) {
  const int64_t width = image.channels / image.groups, in_part = image.channels / image.parts;
  const int64_t channel = group * width, part = channel / in_part;
  return part * kTaps * in_part + channel - part * in_part;
}

template <class T>
struct Sample {
  static HEADROOM_KERNEL_BODY void run(const DeformImage<T>& image, int64_t begin, int64_t end, T* columns) {
    const int64_t width = image.channels / image.groups, in_part = image.channels / image.parts;
    const ImageSize size{image.rows, image.columns, image.channels};
    Taps<T> taps;
    Corners<T> corners;
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      T* const row = columns + (pixel - begin) * kTaps * image.channels;
      for (int64_t group = 0; group < image.groups; ++group) {
        place_taps(image, pixel, group, taps);
        const T* const x = image.x + group * width;
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          T* const to = row + column_of(image, group) + tap * in_part;
          if (!find_corners<T>(size, taps.y[tap], taps.x[tap], corners)) {
            for (int64_t c = 0; c < width; ++c) to[c] = 0;
            continue;
          }
          const T mask = taps.mask[tap], above = mask * (T(1) - corners.below), below = mask * corners.below;
          const T w0 = above * (T(1) - corners.right) * corners.inside[0],
                  w1 = above * corners.right * corners.inside[1],
                  w2 = below * (T(1) - corners.right) * corners.inside[2],
                  w3 = below * corners.right * corners.inside[3];
          const T *const p0 = x + corners.at[0], *const p1 = x + corners.at[1], *const p2 = x + corners.at[2],
                         *const p3 = x + corners.at[3];
          for (int64_t c = 0; c < width; ++c) to[c] = w0 * p0[c] + w1 * p1[c] + w2 * p2[c] + w3 * p3[c];
        }
      }
    }
  }
};

template <class T>
struct Scatter {
  static HEADROOM_KERNEL_BODY void run(const DeformImage<T>& image, int64_t begin, int64_t end, int64_t first,
                                       int64_t last, const T* columns, const DeformGradients<T>& gradients) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      for (int64_t group = first; group < last; ++group) one(image, begin, pixel, group, columns, gradients);
    }
  }

  static HEADROOM_KERNEL_BODY void one(const DeformImage<T>& image, int64_t begin, int64_t pixel, int64_t group,
                                       const T* columns, const DeformGradients<T>& gradients) {
    const int64_t width = image.channels / image.groups, in_part = image.channels / image.parts;
    const ImageSize size{image.rows, image.columns, image.channels};
    Taps<T> taps;
    Corners<T> corners;
    place_taps(image, pixel, group, taps);
    T* const raw = gradients.offset + pixel * 27 * image.groups;
    T* const offset = raw + 2 * kTaps * group;
    T* const mask = raw + 2 * kTaps * image.groups + kTaps * group;
    const T* const from = columns + (pixel - begin) * kTaps * image.channels + column_of(image, group);
    T flow_y = 0, flow_x = 0;
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      T dy = 0, dx = 0, dm = 0;
      if (find_corners<T>(size, taps.y[tap], taps.x[tap], corners)) {
        const T* const d = from + tap * in_part;
        const T right = corners.right, left = T(1) - right, below = corners.below, above = T(1) - below;
        T seen[4];
        const T share[4] = {above * left, above * right, below * left, below * right};
        for (int corner = 0; corner < 4; ++corner) {
          const T* const p = image.x + group * width + corners.at[corner];
          T* const to = gradients.x + group * width + corners.at[corner];
          const T weight = taps.mask[tap] * share[corner] * corners.inside[corner];
          T sum = 0;
          for (int64_t c = 0; c < width; ++c) {
            sum += d[c] * p[c];
            to[c] += weight * d[c];
          }
          seen[corner] = sum * corners.inside[corner];
        }
        dm = share[0] * seen[0] + share[1] * seen[1] + share[2] * seen[2] + share[3] * seen[3];
        dy = taps.mask[tap] * (left * (seen[2] - seen[0]) + right * (seen[3] - seen[1]));
        dx = taps.mask[tap] * (above * (seen[1] - seen[0]) + below * (seen[3] - seen[2]));
      }
      offset[2 * tap] = dy * taps.slope_y[tap];
      offset[2 * tap + 1] = dx * taps.slope_x[tap];
      mask[tap] = dm * taps.mask[tap] * (T(1) - taps.mask[tap]);
      flow_y += dy, flow_x += dx;
    }
    T* const flow = gradients.flow_by_group + ((pixel - begin) * image.groups + group) * 2;
    flow[0] = flow_x, flow[1] = flow_y;
  }
};

}  // namespace

void sample_columns(const DeformImage<float>& image, int64_t begin, int64_t end, float* columns) {
  sdk::run_kernel<Sample<float>, const DeformImage<float>&>(image, begin, end, columns);
}
void sample_columns(const DeformImage<double>& image, int64_t begin, int64_t end, double* columns) {
  sdk::run_kernel<Sample<double>, const DeformImage<double>&>(image, begin, end, columns);
}
void scatter_gradients(const DeformImage<float>& image, int64_t begin, int64_t end, int64_t first, int64_t last,
                       const float* columns, const DeformGradients<float>& gradients) {
  sdk::run_kernel<Scatter<float>, const DeformImage<float>&, int64_t, int64_t, int64_t, int64_t, const float*,
                  const DeformGradients<float>&>(image, begin, end, first, last, columns, gradients);
}
void scatter_gradients(const DeformImage<double>& image, int64_t begin, int64_t end, int64_t first, int64_t last,
                       const double* columns, const DeformGradients<double>& gradients) {
  sdk::run_kernel<Scatter<double>, const DeformImage<double>&, int64_t, int64_t, int64_t, int64_t, const double*,
                  const DeformGradients<double>&>(image, begin, end, first, last, columns, gradients);
}

}  // namespace headroom
