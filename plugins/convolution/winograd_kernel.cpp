#include "convolution/winograd_kernel.hpp"

#include <algorithm>
#include <array>

#include "convolution/winograd_transforms.hpp"
#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::multiply_panel, sdk::Vector, sdk::vector_at;

// A panel has twice as many channels.
int lanes_of(const Convolved& shape) {
  return sdk::vector_lanes() == 16 && shape.in % 32 == 0 && shape.out % 32 == 0 ? 16 : 8;
}

constexpr int64_t most_panels = 4;  // whose products wait for their transform

constexpr int64_t most_channels = 4096;
constexpr std::array<float, most_channels> outside{};  // the padding's pixels

// --- transforms of a tile ---

// Where the corner of a tile lies: its output begins at that row and column of the image.
struct Corner {
  int64_t image, row, column;
};
HEADROOM_KERNEL_BODY Corner corner_of(const Convolved& shape, int64_t tile) {
  const int64_t across = shape.tiles_across(), down = shape.tiles_down();
  return {tile / (across * down), shape.side * (tile / across % down), shape.side * (tile % across)};
}

HEADROOM_KERNEL_BODY const float* pixel(const Convolved& shape, const float* images, int64_t channels, int64_t image,
                                        int64_t row, int64_t column) {
  const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
  return inside ? images + ((image * shape.height + row) * shape.width + column) * channels : outside.data();
}

// Of the input: places are `stride` apart in `to`.
template <int lanes, int side>
HEADROOM_KERNEL_BODY void transform_input(const Convolved& shape, const float* x, int64_t tile, float* to,
                                          int64_t stride) {
  constexpr int across = side + 2;
  const Corner corner = corner_of(shape, tile);
  const float* from[across][across];
  for (int i = 0; i < across; ++i) {
    for (int j = 0; j < across; ++j)
      from[i][j] = pixel(shape, x, shape.in, corner.image, corner.row - 1 + i, corner.column - 1 + j);
  }
  for (int64_t c = 0; c < shape.in; c += lanes) {
    Vector<lanes> d[across][across], transformed[across][across];
    for (int i = 0; i < across; ++i) {
      for (int j = 0; j < across; ++j) d[i][j] = vector_at<lanes>(from[i][j] + c);
    }
    both_ways<typename Filter<side>::Input>(d, transformed);
    for (int i = 0; i < across; ++i) {
      for (int j = 0; j < across; ++j) vector_at<lanes>(to + (i * across + j) * stride + c) = transformed[i][j];
    }
  }
}

// `sum` of channels from c on, and what is added to it; `at`: where it goes.
template <int lanes>
HEADROOM_KERNEL_BODY void write_output(Vector<lanes> sum, const TileEpilogue& epilogue, int64_t c, int64_t at,
                                       float* y) {
  if (epilogue.shift != nullptr) sum += vector_at<lanes>(epilogue.shift + c);
  if (epilogue.residual != nullptr) sum += vector_at<lanes>(epilogue.residual + at);
  // Written so that what is not a number stays it, as in LibTorch.
  if (epilogue.relu) sum = sum < 0 ? Vector<lanes>{} : sum;
  vector_at<lanes>(y + at) = sum;
}

// To the output's channels from `channel` on, `channels` of them: places are `stride` apart in `from`.
template <int lanes, int side>
HEADROOM_KERNEL_BODY void transform_output(const Convolved& shape, const float* from, int64_t stride, int64_t channel,
                                           int64_t channels, int64_t tile, const TileEpilogue& epilogue, float* y) {
  constexpr int across = side + 2;
  const Corner corner = corner_of(shape, tile);
  const int64_t first = ((corner.image * shape.height + corner.row) * shape.width + corner.column) * shape.out;
  const int64_t rows = std::min<int64_t>(side, shape.height - corner.row),
                columns = std::min<int64_t>(side, shape.width - corner.column);
  for (int64_t c = 0; c < channels; c += lanes) {
    Vector<lanes> products[across][across], sums[side][side];
    for (int i = 0; i < across; ++i) {
      for (int j = 0; j < across; ++j) products[i][j] = vector_at<lanes>(from + (i * across + j) * stride + c);
    }
    both_ways<typename Filter<side>::Output>(products, sums);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j)
        write_output<lanes>(sums[i][j], epilogue, channel + c, first + (i * shape.width + j) * shape.out + channel + c,
                            y);
    }
  }
}

// Of the output's gradient, into panels: a panel's places are `stride` apart, panels `panel_stride`.
template <int lanes, int side>
HEADROOM_KERNEL_BODY void transform_gradient(const Convolved& shape, const float* to_y, int64_t tile, float* to,
                                             int64_t stride, int64_t panel_stride) {
  constexpr int across = side + 2;
  const Corner corner = corner_of(shape, tile);
  const float* from[side][side];
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j)
      from[i][j] = pixel(shape, to_y, shape.out, corner.image, corner.row + i, corner.column + j);
  }
  for (int64_t c = 0; c < shape.out; c += lanes) {
    Vector<lanes> gradient[side][side], transformed[across][across];
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) gradient[i][j] = vector_at<lanes>(from[i][j] + c);
    }
    both_ways<typename Filter<side>::OutputGradient>(gradient, transformed);
    float* const panel = to + c / (2 * lanes) * panel_stride + c % (2 * lanes);
    for (int i = 0; i < across; ++i) {
      for (int j = 0; j < across; ++j) vector_at<lanes>(panel + (i * across + j) * stride) = transformed[i][j];
    }
  }
}

// --- what runs on a thread ---

// As multiply_panel(), in sums of few numbers that are added: half the rounding error over many channels.
template <int lanes>
HEADROOM_KERNEL_BODY void multiply_in_parts(sdk::PanelProduct product) {
  constexpr int64_t at_once = 64;
  const int64_t inner = product.inner;
  for (int64_t first = 0; first < inner; first += at_once) {
    product.inner = std::min(at_once, inner - first);
    product.adds = first > 0;
    multiply_panel<lanes>(product);
    product.a += at_once * product.inner_stride;
    product.panel += at_once * 2 * lanes;
  }
}

template <int lanes, int side>
struct ConvolveTiles {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, const float* x, const float* weight, int64_t first,
                                       int64_t last, const TileEpilogue* epilogue, float* scratch, float* y) {
    constexpr int64_t places = (side + 2) * (side + 2);
    const int64_t tiles = last - first, in = shape->in, out = shape->out;
    const int64_t to_next_input = place_stride(tiles, in);
    float *const inputs = scratch, *const products = scratch + places * to_next_input;
    for (int64_t t = 0; t < tiles; ++t)
      transform_input<lanes, side>(*shape, x, first + t, inputs + t * in, to_next_input);
    for (int64_t channel = 0; channel < out; channel += most_panels * 2 * lanes) {
      const int64_t channels = std::min(most_panels * 2 * lanes, out - channel),
                    to_next_product = place_stride(tiles, channels);
      for (int64_t place = 0; place < places; ++place) {
        for (int64_t c = 0; c < channels; c += 2 * lanes) {
          multiply_in_parts<lanes>({tiles, in, inputs + place * to_next_input, in, 1,
                                    weight + (place * out + channel + c) * in, products + place * to_next_product + c,
                                    channels, /*adds=*/false});
        }
      }
      for (int64_t t = 0; t < tiles; ++t) {
        transform_output<lanes, side>(*shape, products + t * channels, to_next_product, channel, channels, first + t,
                                      *epilogue, y);
      }
    }
  }
};

template <int lanes, int side>
struct TransformTiles {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, const float* x, const float* to_y, int64_t first,
                                       int64_t count, int64_t begin, int64_t end, float* inputs, float* gradients) {
    for (int64_t t = begin; t < end; ++t) {
      transform_input<lanes, side>(*shape, x, first + t, inputs + t * shape->in, place_stride(count, shape->in));
      transform_gradient<lanes, side>(*shape, to_y, first + t, gradients + t * 2 * lanes,
                                      place_stride(count, shape->out), count * 2 * lanes);
    }
  }
};

template <int lanes>
struct MultiplyTiles {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, int64_t count, const float* inputs,
                                       const float* gradients, bool adds, int64_t first, int64_t last, float* sums) {
    const int64_t in = shape->in, out = shape->out, panels = out / (2 * lanes);
    for (int64_t i = first; i < last; ++i) {
      const int64_t place = i / panels, panel = i % panels;
      const float *const of_inputs = inputs + place * place_stride(count, in), *const of_gradients =
                                                                                   gradients +
                                                                                   place * place_stride(count, out) +
                                                                                   panel * 2 * lanes * count;
      float* const of_sums = sums + place * place_stride(in, out) + panel * 2 * lanes * in;
      multiply_panel<lanes>({in, count, of_inputs, 1, in, of_gradients, of_sums, 2 * lanes, adds});
    }
  }
};

// --- weights ---

// Kernel (o, i) begins at `weight` + o * to_next_out + i * to_next_in.
struct Kernels {
  const float *weight, *scale;  // scale: of each o, or where `turned` of each i
  int64_t in, out, to_next_out, to_next_in;
  bool turned;  // by half
};

template <int lanes, int side>
struct TransformWeight {
  static HEADROOM_KERNEL_BODY void run(const Kernels* kernels, int64_t first, int64_t last, float* to) {
    constexpr int64_t across = 2 * lanes, tile = side + 2;
    constexpr int64_t inputs_at_once = 16 / side;  // each read is some cache lines, each write too
    const int64_t in = kernels->in;
    for (int64_t panel = first; panel < last; ++panel) {
      for (int64_t begin = 0; begin < in; begin += inputs_at_once) {
        float block[tile * tile][inputs_at_once][across];
        for (int64_t i = 0; i < inputs_at_once; ++i) {
          for (int64_t half = 0; half < across; half += lanes) {
            float side_by_side[9][lanes];
            for (int64_t lane = 0; lane < lanes; ++lane) {
              const int64_t o = panel * across + half + lane;
              const float* const g = kernels->weight + o * kernels->to_next_out + (begin + i) * kernels->to_next_in;
              const float scale = kernels->scale[kernels->turned ? begin + i : o];
              for (int64_t k = 0; k < 9; ++k) side_by_side[k][lane] = scale * g[kernels->turned ? 8 - k : k];
            }
            Vector<lanes> kernel[3][3], transformed[tile][tile];
            for (int64_t k = 0; k < 9; ++k) kernel[k / 3][k % 3] = vector_at<lanes>(side_by_side[k]);
            both_ways<typename Filter<side>::Kernel>(kernel, transformed);
            for (int64_t place = 0; place < tile * tile; ++place)
              vector_at<lanes>(&block[place][i][half]) = transformed[place / tile][place % tile];
          }
        }
        for (int64_t place = 0; place < tile * tile; ++place)
          std::copy_n(&block[place][0][0], inputs_at_once * across,
                      to + (place * kernels->out + panel * across) * in + begin * across);
      }
    }
  }
};

template <int lanes, int side>
struct FinishGradient {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, const float* sums, const float* scales, int64_t first,
                                       int64_t last, float* to_weight) {
    constexpr int64_t tile = side + 2;
    const int64_t in = shape->in, to_next_place = place_stride(in, shape->out);
    for (int64_t o = first * 2 * lanes; o < last * 2 * lanes; o += lanes) {
      const float* const of_panel = sums + o / (2 * lanes) * 2 * lanes * in + o % (2 * lanes);
      const Vector<lanes> scale = vector_at<lanes>(scales + o);
      for (int64_t i = 0; i < in; ++i) {
        Vector<lanes> sum[tile][tile], kernel[3][3];
        for (int64_t place = 0; place < tile * tile; ++place)
          sum[place / tile][place % tile] = vector_at<lanes>(of_panel + place * to_next_place + i * 2 * lanes);
        both_ways<typename Filter<side>::KernelGradient>(sum, kernel);
        float side_by_side[9][lanes];
        for (int64_t k = 0; k < 9; ++k) vector_at<lanes>(side_by_side[k]) = scale * kernel[k / 3][k % 3];
        for (int64_t lane = 0; lane < lanes; ++lane) {
          float* const to = to_weight + ((o + lane) * in + i) * 9;
          for (int64_t k = 0; k < 9; ++k) to[k] = side_by_side[k][lane];
        }
      }
    }
  }
};

template <template <int, int> class Work, class... Arguments>
void run_for(const Convolved& shape, Arguments... arguments) {
  if (lanes_of(shape) == 16) {
    if (shape.side == 4) return sdk::run_kernel<Work<16, 4>>(arguments...);
    return sdk::run_kernel<Work<16, 2>>(arguments...);
  }
  if (shape.side == 4) return sdk::run_kernel<Work<8, 4>>(arguments...);
  sdk::run_kernel<Work<8, 2>>(arguments...);
}

}  // namespace

bool has_winograd(int64_t in, int64_t out) {
  return sdk::cpu_isa() != sdk::CpuIsa::baseline && in % 16 == 0 && out % 16 == 0 && std::max(in, out) <= most_channels;
}

int64_t winograd_panels(const Convolved& shape) { return shape.out / (2 * lanes_of(shape)); }

int64_t winograd_scratch(const Convolved& shape, int64_t tiles) {
  const int64_t channels = std::min(shape.out, most_panels * 2 * lanes_of(shape));
  return shape.places() * (place_stride(tiles, shape.in) + place_stride(tiles, channels));
}

void transform_weight(const Convolved& shape, const float* weight, const float* scale, bool backward, int64_t first,
                      int64_t last, float* transformed) {
  // As it lies: [out, in, 3, 3], or where `backward` [in, out, 3, 3].
  const Kernels kernels{weight,  scale, shape.in, shape.out, backward ? 9 : 9 * shape.in, backward ? 9 * shape.out : 9,
                        backward};
  run_for<TransformWeight>(shape, &kernels, first, last, transformed);
}

void convolve_tiles(const Convolved& shape, const float* x, const float* weight, int64_t first, int64_t last,
                    const TileEpilogue& epilogue, float* scratch, float* y) {
  run_for<ConvolveTiles>(shape, &shape, x, weight, first, last, &epilogue, scratch, y);
}

void transform_tiles(const Convolved& shape, const float* x, const float* to_y, int64_t first, int64_t count,
                     int64_t begin, int64_t end, float* inputs, float* gradients) {
  run_for<TransformTiles>(shape, &shape, x, to_y, first, count, begin, end, inputs, gradients);
}

void multiply_tiles(const Convolved& shape, int64_t count, const float* inputs, const float* gradients, bool adds,
                    int64_t first, int64_t last, float* sums) {
  if (lanes_of(shape) == 16)
    return sdk::run_kernel<MultiplyTiles<16>>(&shape, count, inputs, gradients, adds, first, last, sums);
  sdk::run_kernel<MultiplyTiles<8>>(&shape, count, inputs, gradients, adds, first, last, sums);
}

void finish_weight_gradient(const Convolved& shape, const float* sums, const float* scale, int64_t first, int64_t last,
                            float* to_weight) {
  run_for<FinishGradient>(shape, &shape, sums, scale, first, last, to_weight);
}

}  // namespace headroom
