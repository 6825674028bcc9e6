// Convolutions of 3 x 3 with stride 1 and padding 1 by F(2x2, 3x3) of Winograd's minimal filtering (Lavin and Gray,
// "Fast algorithms for convolutional neural networks", 2015): 16 products for each 2 x 2 outputs of a channel, where
// there are 36 otherwise. For several instruction sets (sdk/cpu_kernel.hpp). Torch-free.
//
// Images lie row by row, [image, row, column, channel], float32. A tile is 2 x 2 of the output; tiles are numbered
// through all images, row by row. Each of the 16 places of a transformed tile is a matrix product over channels.
#pragma once

#include <cstdint>

namespace headroom {

struct Convolved {
  int64_t images, height, width, in, out;  // channels

  int64_t tiles_across() const { return (width + 1) / 2; }
  int64_t tiles() const { return images * ((height + 1) / 2) * tiles_across(); }
};

// Whether there are kernels for these channels on this processor.
bool has_winograd(int64_t in, int64_t out);

// The other direction: what is convolved is the output's gradient, the result is the input's.
inline Convolved turned(const Convolved& shape) {
  return {shape.images, shape.height, shape.width, shape.out, shape.in};
}

// A transformed weight, [16, out panel, in, channels of a panel]. `weight` [out, in, 3, 3] times `scale` [out]; where
// `backward`, those of turned(). In parts by output panel, of which there are winograd_panels().
int64_t winograd_panels(int64_t out);
void transform_weight(const float* weight, const float* scale, int64_t in, int64_t out, bool backward, int64_t first,
                      int64_t last, float* transformed);

// From one place of some tiles to the next, in numbers: a few cache lines more than the place takes, since all places
// of a tile are written together, and would share the same sets of a cache.
inline int64_t place_stride(int64_t tiles, int64_t channels) { return tiles * channels + 64; }

// What is added to an output before it is written, and whether what is below 0 is cut off then; nullptr: nothing.
struct Finish {
  const float* shift = nullptr;     // [channels]
  const float* residual = nullptr;  // as the output
  bool relu = false;
};

// The output's tiles [first, last), from x and a transformed weight. `scratch` has winograd_scratch() numbers. [any]
inline int64_t winograd_scratch(const Convolved& shape, int64_t tiles) {
  return 16 * (place_stride(tiles, shape.in) + place_stride(tiles, shape.out));
}
void convolve_tiles(const Convolved& shape, const float* x, const float* weight, int64_t first, int64_t last,
                    const Finish& finish, float* scratch, float* y);

// The weight's gradient from `count` tiles from `first` on, in three steps that threads share.
// 1. Tiles [begin, end) of these: of x into `inputs` [16, count, in], of the output's gradient into `gradients`
//    [16, out panel, count, channels of a panel]; places are place_stride() apart.
void transform_tiles(const Convolved& shape, const float* x, const float* to_y, int64_t first, int64_t count,
                     int64_t begin, int64_t end, float* inputs, float* gradients);
// 2. Their products, of a place and a panel [first, last) of 16 * winograd_panels(out), into `sums` [16, in, out].
//    `adds`: to what is there.
void multiply_tiles(const Convolved& shape, int64_t count, const float* inputs, const float* gradients, bool adds,
                    int64_t first, int64_t last, float* sums);
// 3. Once all tiles are in: the gradient [out, in, 3, 3] of output panels [first, last), times `scale` [out].
void finish_weight_gradient(const Convolved& shape, const float* sums, const float* scale, int64_t first, int64_t last,
                            float* to_weight);

}  // namespace headroom
