// What deform_conv_along() does pixel by pixel, on the CPU. Torch-free.
#pragma once

#include <cstdint>

namespace headroom {

inline constexpr int64_t kTaps = 9;  // of a 3 x 3 kernel

// Everything is channels-last and of one image. A pixel's columns are [part][tap][channel of the part].
template <class T>
struct DeformImage {
  int64_t rows = 0, columns = 0, channels = 0, groups = 0, parts = 1;
  T reach = 0;
  const T* x = nullptr;       // [y, x, channels]
  const T* offset = nullptr;  // raw, [y, x, 27 * groups]
  const T* flow = nullptr;    // [y, x, 2 * parts], each part's (x, y)
};

// Of what a DeformImage points to; x is added to, the others are written.
template <class T>
struct DeformGradients {
  T* x = nullptr;
  T* offset = nullptr;
  T* flow_by_group = nullptr;  // [pixel of the chunk, groups, 2], (x, y)
};

// `columns` of the pixels [begin, end), from that of pixel `begin` on.
void sample_columns(const DeformImage<float>& image, int64_t begin, int64_t end, float* columns);
void sample_columns(const DeformImage<double>& image, int64_t begin, int64_t end, double* columns);

// The way back for the groups [first, last) of the pixels [begin, end), whose columns' gradients are given. Groups
// share nothing: they may run at the same time.
void scatter_gradients(const DeformImage<float>& image, int64_t begin, int64_t end, int64_t first, int64_t last,
                       const float* columns, const DeformGradients<float>& gradients);
void scatter_gradients(const DeformImage<double>& image, int64_t begin, int64_t end, int64_t first, int64_t last,
                       const double* columns, const DeformGradients<double>& gradients);

}  // namespace headroom
