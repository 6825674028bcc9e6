// Convolutions of 3 x 3 with stride 1 and padding 1 by Winograd's minimal filtering (winograd_transforms.hpp): F(2x2,
// 3x3) takes 16 products for each 2 x 2 outputs of a channel, where there are 36 otherwise, F(4x4, 3x3) 36 for each 4 x
// 4, where there are 144. For several instruction sets (sdk/cpu_kernel.hpp). Torch-free.
//
// Images lie row by row, [image, row, column, channel], float32. A tile is side x side of the output; tiles are
// numbered through all images, row by row. Each of the places() of a transformed tile is a matrix product over
// channels.
#pragma once

#include <cstdint>

namespace headroom {

struct Convolved {
  int64_t images, height, width, in, out;  // channels
  int64_t side;                            // of a tile: 2 or 4

  int64_t tiles_across() const { return (width + side - 1) / side; }
  int64_t tiles_down() const { return (height + side - 1) / side; }
  int64_t tiles() const { return images * tiles_down() * tiles_across(); }
  int64_t places() const { return (side + 2) * (side + 2); }
};

// Whether there are kernels for these channels on this processor: multiples of 16.
bool has_winograd(int64_t in, int64_t out);

// The other direction: what is convolved is the output's gradient, the result is the input's.
inline Convolved turned(const Convolved& shape) {
  return {shape.images, shape.height, shape.width, shape.out, shape.in, shape.side};
}

// A transformed weight, [places, out panel, in, channels of a panel]. `weight` [out, in, 3, 3] times `scale` [out];
// where `backward`, those of turned(shape). In parts by output panel, of which there are winograd_panels().
int64_t winograd_panels(const Convolved& shape);
void transform_weight(const Convolved& shape, const float* weight, const float* scale, bool backward, int64_t first,
                      int64_t last, float* transformed);

// From one place of some tiles, or of a weight's sums, to the next, in numbers: a few cache lines more than the place
// takes, since all places of a tile are written or read together, and would share the same sets of a cache.
inline int64_t place_stride(int64_t tiles, int64_t channels) { return tiles * channels + 64; }

// What is added to an output before it is written, and whether what is below 0 is cut off then; nullptr: nothing.
struct TileEpilogue {
  const float* shift = nullptr;     // [channels]
  const float* residual = nullptr;  // as the output
  bool relu = false;
};

// The output's tiles [first, last), from x and a transformed weight. `scratch` has winograd_scratch() numbers. [any]
int64_t winograd_scratch(const Convolved& shape, int64_t tiles);
void convolve_tiles(const Convolved& shape, const float* x, const float* weight, int64_t first, int64_t last,
                    const TileEpilogue& epilogue, float* scratch, float* y);

// The weight's gradient from `count` tiles from `first` on, in three steps that threads share.
// 1. Tiles [begin, end) of these: of x into `inputs` [places, count, in], of the output's gradient into `gradients`
//    [places, out panel, count, channels of a panel]; places are place_stride() apart.
void transform_tiles(const Convolved& shape, const float* x, const float* to_y, int64_t first, int64_t count,
                     int64_t begin, int64_t end, float* inputs, float* gradients);
// 2. Their products, of a place and a panel [first, last) of places * winograd_panels(), into `sums`
//    [places, out panel, in, channels of a panel], places place_stride(in, out) apart. `adds`: to what is there.
void multiply_tiles(const Convolved& shape, int64_t count, const float* inputs, const float* gradients, bool adds,
                    int64_t first, int64_t last, float* sums);
// 3. Once all tiles are in: the gradient [out, in, 3, 3] of output panels [first, last), times `scale` [out].
void finish_weight_gradient(const Convolved& shape, const float* sums, const float* scale, int64_t first, int64_t last,
                            float* to_weight);

}  // namespace headroom
