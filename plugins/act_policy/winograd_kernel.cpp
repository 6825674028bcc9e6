#include "winograd_kernel.hpp"

#include <algorithm>
#include <array>

#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::multiply_panel, sdk::Vector, sdk::vector_at;

int64_t panel_channels() { return 2 * sdk::vector_lanes(); }

constexpr int64_t places = 16, most_channels = 4096;
constexpr std::array<float, most_channels> outside{};  // the padding's pixels

// --- transforms ---

// Where the corner of a tile lies: its output is [row, row + 2) x [column, column + 2) of the image.
struct Corner {
  int64_t image, row, column;
};
HEADROOM_KERNEL_BODY Corner corner_of(const Convolved& shape, int64_t tile) {
  const int64_t across = shape.tiles_across(), down = (shape.height + 1) / 2;
  return {tile / (across * down), 2 * (tile / across % down), 2 * (tile % across)};
}

HEADROOM_KERNEL_BODY const float* pixel(const Convolved& shape, const float* images, int64_t channels, int64_t image,
                                        int64_t row, int64_t column) {
  const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
  return inside ? images + ((image * shape.height + row) * shape.width + column) * channels : outside.data();
}

// B^T d B of one tile: places are `stride` apart in `to`.
template <int lanes>
HEADROOM_KERNEL_BODY void transform_input(const Convolved& shape, const float* x, int64_t tile, float* to,
                                          int64_t stride) {
  const Corner corner = corner_of(shape, tile);
  const float* from[4][4];
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j)
      from[i][j] = pixel(shape, x, shape.in, corner.image, corner.row - 1 + i, corner.column - 1 + j);
  }
  for (int64_t c = 0; c < shape.in; c += lanes) {
    Vector<lanes> d[4][4], e[4][4];
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) d[i][j] = vector_at<lanes>(from[i][j] + c);
    }
    for (int64_t j = 0; j < 4; ++j) {
      e[0][j] = d[0][j] - d[2][j];
      e[1][j] = d[1][j] + d[2][j];
      e[2][j] = d[2][j] - d[1][j];
      e[3][j] = d[1][j] - d[3][j];
    }
    for (int64_t i = 0; i < 4; ++i) {
      float* const row = to + 4 * i * stride + c;
      vector_at<lanes>(row) = e[i][0] - e[i][2];
      vector_at<lanes>(row + stride) = e[i][1] + e[i][2];
      vector_at<lanes>(row + 2 * stride) = e[i][2] - e[i][1];
      vector_at<lanes>(row + 3 * stride) = e[i][1] - e[i][3];
    }
  }
}

// `sum` of channels from c on, and what is added to it; `at`: where it goes.
template <int lanes>
HEADROOM_KERNEL_BODY void write_output(Vector<lanes> sum, const Finish& finish, int64_t c, int64_t at, float* y) {
  if (finish.shift != nullptr) sum += vector_at<lanes>(finish.shift + c);
  if (finish.residual != nullptr) sum += vector_at<lanes>(finish.residual + at);
  // Written so that what is not a number stays it, as in LibTorch.
  if (finish.relu) sum = sum < 0 ? Vector<lanes>{} : sum;
  vector_at<lanes>(y + at) = sum;
}

// A^T m A of one tile: places are `stride` apart in `from`.
template <int lanes>
HEADROOM_KERNEL_BODY void transform_output(const Convolved& shape, const float* from, int64_t stride, int64_t tile,
                                           const Finish& finish, float* y) {
  const Corner corner = corner_of(shape, tile);
  const int64_t first = ((corner.image * shape.height + corner.row) * shape.width + corner.column) * shape.out;
  const bool is_last_column = corner.column + 1 == shape.width;
  for (int64_t c = 0; c < shape.out; c += lanes) {
    Vector<lanes> m[4][4], half[2][4];
    for (int64_t i = 0; i < places; ++i) m[i / 4][i % 4] = vector_at<lanes>(from + i * stride + c);
    for (int64_t j = 0; j < 4; ++j) {
      half[0][j] = m[0][j] + m[1][j] + m[2][j];
      half[1][j] = m[1][j] - m[2][j] - m[3][j];
    }
    for (int64_t i = 0; i < 2 && corner.row + i < shape.height; ++i) {
      const int64_t to = first + i * shape.width * shape.out + c;
      write_output<lanes>(half[i][0] + half[i][1] + half[i][2], finish, c, to, y);
      if (!is_last_column) write_output<lanes>(half[i][1] - half[i][2] - half[i][3], finish, c, to + shape.out, y);
    }
  }
}

// A g A^T of one tile of the output's gradient, into panels: a panel's places are `stride` apart, panels
// `panel_stride`.
template <int lanes>
HEADROOM_KERNEL_BODY void transform_gradient(const Convolved& shape, const float* to_y, int64_t tile, float* to,
                                             int64_t stride, int64_t panel_stride) {
  const Corner corner = corner_of(shape, tile);
  const float* from[2][2];
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 2; ++j)
      from[i][j] = pixel(shape, to_y, shape.out, corner.image, corner.row + i, corner.column + j);
  }
  for (int64_t c = 0; c < shape.out; c += lanes) {
    Vector<lanes> g[2][2], half[4][2];
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 2; ++j) g[i][j] = vector_at<lanes>(from[i][j] + c);
    }
    for (int64_t j = 0; j < 2; ++j) {
      half[0][j] = g[0][j];
      half[1][j] = g[0][j] + g[1][j];
      half[2][j] = g[0][j] - g[1][j];
      half[3][j] = -g[1][j];
    }
    float* const panel = to + c / (2 * lanes) * panel_stride + c % (2 * lanes);
    for (int64_t i = 0; i < 4; ++i) {
      float* const row = panel + 4 * i * stride;
      vector_at<lanes>(row) = half[i][0];
      vector_at<lanes>(row + stride) = half[i][0] + half[i][1];
      vector_at<lanes>(row + 2 * stride) = half[i][0] - half[i][1];
      vector_at<lanes>(row + 3 * stride) = -half[i][1];
    }
  }
}

// --- what runs on a thread ---

template <int lanes>
struct ConvolveTiles {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, const float* x, const float* weight, int64_t first,
                                       int64_t last, const Finish* finish, float* scratch, float* y) {
    const int64_t tiles = last - first, in = shape->in, out = shape->out;
    const int64_t to_next_input = place_stride(tiles, in), to_next_product = place_stride(tiles, out);
    float *const inputs = scratch, *const products = scratch + places * to_next_input;
    for (int64_t t = 0; t < tiles; ++t) transform_input<lanes>(*shape, x, first + t, inputs + t * in, to_next_input);
    for (int64_t place = 0; place < places; ++place) {
      for (int64_t c = 0; c < out; c += 2 * lanes) {
        multiply_panel<lanes, false>({tiles, in, inputs + place * to_next_input, in, 1, weight + (place * out + c) * in,
                                      products + place * to_next_product + c, out});
      }
    }
    for (int64_t t = 0; t < tiles; ++t)
      transform_output<lanes>(*shape, products + t * out, to_next_product, first + t, *finish, y);
  }
};

template <int lanes>
struct TransformTiles {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, const float* x, const float* to_y, int64_t first,
                                       int64_t count, int64_t begin, int64_t end, float* inputs, float* gradients) {
    for (int64_t t = begin; t < end; ++t) {
      transform_input<lanes>(*shape, x, first + t, inputs + t * shape->in, place_stride(count, shape->in));
      transform_gradient<lanes>(*shape, to_y, first + t, gradients + t * 2 * lanes, place_stride(count, shape->out),
                                count * 2 * lanes);
    }
  }
};

template <int lanes>
struct MultiplyTiles {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, int64_t count, const float* inputs,
                                       const float* gradients, bool adds, int64_t first, int64_t last, float* sums) {
    const int64_t in = shape->in, out = shape->out, panels = out / (2 * lanes);
    for (int64_t i = first; i < last; ++i) {
      const int64_t place = i / panels, channel = i % panels * 2 * lanes;
      const sdk::PanelProduct product{in,
                                      count,
                                      inputs + place * place_stride(count, in),
                                      1,
                                      in,
                                      gradients + place * place_stride(count, out) + channel * count,
                                      sums + place * in * out + channel,
                                      out};
      if (adds) {
        multiply_panel<lanes, true>(product);
      } else {
        multiply_panel<lanes, false>(product);
      }
    }
  }
};

// --- weights ---

constexpr int64_t inputs_at_once = 8;  // of a weight: each read is some cache lines, each write too

// G g G^T of 3 x 3 kernels, one in each lane.
template <int lanes>
HEADROOM_KERNEL_BODY void transform_kernels(const float* g, float* to, int64_t stride) {
  Vector<lanes> half[4][3];
  for (int64_t j = 0; j < 3; ++j) {
    const Vector<lanes> top = vector_at<lanes>(g + j * lanes), middle = vector_at<lanes>(g + (3 + j) * lanes),
                        bottom = vector_at<lanes>(g + (6 + j) * lanes);
    half[0][j] = top;
    half[1][j] = 0.5F * (top + bottom + middle);
    half[2][j] = 0.5F * (top + bottom - middle);
    half[3][j] = bottom;
  }
  for (int64_t i = 0; i < 4; ++i) {
    float* const row = to + 4 * i * stride;
    const Vector<lanes> outer = half[i][0] + half[i][2];
    vector_at<lanes>(row) = half[i][0];
    vector_at<lanes>(row + stride) = 0.5F * (outer + half[i][1]);
    vector_at<lanes>(row + 2 * stride) = 0.5F * (outer - half[i][1]);
    vector_at<lanes>(row + 3 * stride) = half[i][2];
  }
}

// Kernel (o, i) begins at `weight` + o * to_next_out + i * to_next_in.
struct Kernels {
  const float *weight, *scale;  // of each o, or where `turned` of each i
  int64_t in, out, to_next_out, to_next_in;
  bool turned;  // by half
};

template <int lanes>
struct TransformWeight {
  static HEADROOM_KERNEL_BODY void run(const Kernels* kernels, int64_t first, int64_t last, float* to) {
    constexpr int64_t across = 2 * lanes;
    const int64_t in = kernels->in;
    for (int64_t panel = first; panel < last; ++panel) {
      for (int64_t begin = 0; begin < in; begin += inputs_at_once) {
        float block[places][inputs_at_once][across];
        for (int64_t i = 0; i < inputs_at_once; ++i) {
          for (int64_t half = 0; half < across; half += lanes) {
            float side_by_side[9 * lanes];
            for (int64_t lane = 0; lane < lanes; ++lane) {
              const int64_t o = panel * across + half + lane;
              const float* const g = kernels->weight + o * kernels->to_next_out + (begin + i) * kernels->to_next_in;
              const float scale = kernels->scale[kernels->turned ? begin + i : o];
              for (int64_t k = 0; k < 9; ++k) side_by_side[k * lanes + lane] = scale * g[kernels->turned ? 8 - k : k];
            }
            transform_kernels<lanes>(side_by_side, &block[0][i][half], inputs_at_once * across);
          }
        }
        for (int64_t place = 0; place < places; ++place)
          std::copy_n(&block[place][0][0], inputs_at_once * across,
                      to + (place * kernels->out + panel * across) * in + begin * across);
      }
    }
  }
};

// G^T s G, of the gradient of the transformed weight.
template <int lanes>
struct FinishGradient {
  static HEADROOM_KERNEL_BODY void run(const Convolved* shape, const float* sums, const float* scales, int64_t first,
                                       int64_t last, float* to_weight) {
    const int64_t in = shape->in, out = shape->out;
    for (int64_t o = first * 2 * lanes; o < last * 2 * lanes; o += lanes) {
      const Vector<lanes> scale = vector_at<lanes>(scales + o);
      for (int64_t i = 0; i < in; ++i) {
        Vector<lanes> s[4][4], half[3][4];
        for (int64_t place = 0; place < places; ++place)
          s[place / 4][place % 4] = vector_at<lanes>(sums + (place * in + i) * out + o);
        for (int64_t j = 0; j < 4; ++j) {
          const Vector<lanes> sum = 0.5F * (s[1][j] + s[2][j]);
          half[0][j] = s[0][j] + sum;
          half[1][j] = 0.5F * (s[1][j] - s[2][j]);
          half[2][j] = s[3][j] + sum;
        }
        float side_by_side[9 * lanes];
        for (int64_t j = 0; j < 3; ++j) {
          const Vector<lanes> sum = 0.5F * (half[j][1] + half[j][2]);
          vector_at<lanes>(side_by_side + 3 * j * lanes) = scale * (half[j][0] + sum);
          vector_at<lanes>(side_by_side + (3 * j + 1) * lanes) = scale * (0.5F * (half[j][1] - half[j][2]));
          vector_at<lanes>(side_by_side + (3 * j + 2) * lanes) = scale * (half[j][3] + sum);
        }
        for (int64_t lane = 0; lane < lanes; ++lane) {
          float* const to = to_weight + ((o + lane) * in + i) * 9;
          for (int64_t k = 0; k < 9; ++k) to[k] = side_by_side[k * lanes + lane];
        }
      }
    }
  }
};

}  // namespace

bool has_winograd(int64_t in, int64_t out) {
  return sdk::cpu_isa() != sdk::CpuIsa::baseline && in % panel_channels() == 0 && out % panel_channels() == 0 &&
         std::max(in, out) <= most_channels;
}

int64_t winograd_panels(int64_t out) { return out / panel_channels(); }

void transform_weight(const float* weight, const float* scale, int64_t in, int64_t out, bool backward, int64_t first,
                      int64_t last, float* transformed) {
  // As it lies: [out, in, 3, 3], or where `backward` [in, out, 3, 3].
  const Kernels kernels{weight, scale, in, out, backward ? 9 : 9 * in, backward ? 9 * out : 9, backward};
  if (sdk::vector_lanes() == 16) return sdk::run_kernel<TransformWeight<16>>(&kernels, first, last, transformed);
  sdk::run_kernel<TransformWeight<8>>(&kernels, first, last, transformed);
}

void convolve_tiles(const Convolved& shape, const float* x, const float* weight, int64_t first, int64_t last,
                    const Finish& finish, float* scratch, float* y) {
  if (sdk::vector_lanes() == 16)
    return sdk::run_kernel<ConvolveTiles<16>>(&shape, x, weight, first, last, &finish, scratch, y);
  sdk::run_kernel<ConvolveTiles<8>>(&shape, x, weight, first, last, &finish, scratch, y);
}

void transform_tiles(const Convolved& shape, const float* x, const float* to_y, int64_t first, int64_t count,
                     int64_t begin, int64_t end, float* inputs, float* gradients) {
  if (sdk::vector_lanes() == 16)
    return sdk::run_kernel<TransformTiles<16>>(&shape, x, to_y, first, count, begin, end, inputs, gradients);
  sdk::run_kernel<TransformTiles<8>>(&shape, x, to_y, first, count, begin, end, inputs, gradients);
}

void multiply_tiles(const Convolved& shape, int64_t count, const float* inputs, const float* gradients, bool adds,
                    int64_t first, int64_t last, float* sums) {
  if (sdk::vector_lanes() == 16)
    return sdk::run_kernel<MultiplyTiles<16>>(&shape, count, inputs, gradients, adds, first, last, sums);
  sdk::run_kernel<MultiplyTiles<8>>(&shape, count, inputs, gradients, adds, first, last, sums);
}

void finish_weight_gradient(const Convolved& shape, const float* sums, const float* scale, int64_t first, int64_t last,
                            float* to_weight) {
  if (sdk::vector_lanes() == 16)
    return sdk::run_kernel<FinishGradient<16>>(&shape, sums, scale, first, last, to_weight);
  sdk::run_kernel<FinishGradient<8>>(&shape, sums, scale, first, last, to_weight);
}

}  // namespace headroom
