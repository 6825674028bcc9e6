#include "winograd_kernel.hpp"

#include <array>

#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::Vector, sdk::vector_at;

constexpr int64_t tile_outputs = 4, fewest_taps = 2, most_taps = 5, most_kernel = 64;
constexpr std::array<double, 7> points{0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5};  // the last place is at infinity
constexpr std::array<float, 64> outside{};                                     // past the end of a sample

// y = A^T ((G w) * (B^T x)) of 4 outputs: Toom and Cook's way, transposed.
template <int taps>
struct Filter {
  static constexpr int places = taps + 3, finite = places - 1;
  std::array<std::array<float, places>, places> input{};         // B^T
  std::array<std::array<float, places>, tile_outputs> output{};  // A^T
  std::array<std::array<float, taps>, places> weight{};          // G

  constexpr Filter() {
    for (int p = 0; p < places; ++p) {
      // The product of (z - point) over all finite points but p's own, and its value there.
      std::array<double, places> product{1.0};
      int degree = 0;
      double at_point = 1.0;
      for (int q = 0; q < finite; ++q) {
        if (q == p) continue;
        for (int j = ++degree; j > 0; --j) product[j] = product[j - 1] - points[q] * product[j];
        product[0] *= -points[q];
        if (p < finite) at_point *= points[p] - points[q];
      }
      for (int j = 0; j < places; ++j) input[p][j] = static_cast<float>(product[j]);
      double power = 1.0;
      for (int i = 0; i < tile_outputs; ++i, power *= points[p % finite])
        output[i][p] = p < finite ? static_cast<float>(power) : static_cast<float>(i + 1 == tile_outputs);
      power = 1.0;
      for (int k = 0; k < taps; ++k, power *= points[p % finite])
        weight[p][k] = p < finite ? static_cast<float>(power / at_point) : static_cast<float>(k + 1 == taps);
    }
  }
};
template <int taps>
constexpr Filter<taps> filter{};

// Sums of products with constants: those with 0 are left out.
template <int lanes, size_t terms>
HEADROOM_KERNEL_BODY Vector<lanes> combined(const std::array<float, terms>& factors,
                                            const Vector<lanes> (&vectors)[terms]) {
  Vector<lanes> sum{};
#pragma GCC unroll 8
  for (size_t j = 0; j < terms; ++j) {
    if (factors[j] != 0.0F) sum += factors[j] * vectors[j];
  }
  return sum;
}

template <int taps>
struct OfTaps {
  static constexpr int places = taps + 3;

  template <int lanes>
  struct Input {
    static HEADROOM_KERNEL_BODY void run(const TimeConvolution* shape, const float* x, int64_t first, int64_t last,
                                         float* to, int64_t to_next) {
      const int64_t frame = shape->frame(), end = shape->time * shape->channels;
      for (int64_t tile = first; tile < last; ++tile) {
        const int64_t begin = tile_outputs * tile * frame;
        for (int64_t c = 0; c < frame; c += lanes) {
          Vector<lanes> x_at[places];
#pragma GCC unroll 8
          for (int j = 0; j < places; ++j) {
            const int64_t at = begin + j * frame + c;
            x_at[j] = vector_at<lanes>(at < end ? x + at : outside.data());
          }
#pragma GCC unroll 8
          for (int p = 0; p < places; ++p)
            vector_at<lanes>(to + p * to_next + tile * frame + c) = combined<lanes>(filter<taps>.input[p], x_at);
        }
      }
    }
  };

  template <int lanes>
  struct Output {
    static HEADROOM_KERNEL_BODY void run(const TimeConvolution* shape, const float* from, int64_t to_next,
                                         const float* bias, int64_t first, int64_t last, float* y) {
      const int64_t out = shape->out, outputs = shape->outputs();
      for (int64_t tile = first; tile < last; ++tile) {
        for (int64_t c = 0; c < out; c += lanes) {
          Vector<lanes> place[places];
#pragma GCC unroll 8
          for (int p = 0; p < places; ++p) place[p] = vector_at<lanes>(from + p * to_next + tile * out + c);
          const Vector<lanes> base = vector_at<lanes>(bias + c);
#pragma GCC unroll 4
          for (int i = 0; i < tile_outputs; ++i) {
            const int64_t t = tile_outputs * tile + i;
            if (t < outputs) vector_at<lanes>(y + t * out + c) = base + combined<lanes>(filter<taps>.output[i], place);
          }
        }
      }
    }
  };

  template <int lanes>
  struct OutputGradient {
    static HEADROOM_KERNEL_BODY void run(const TimeConvolution* shape, const float* to_y, int64_t first, int64_t last,
                                         float* to, int64_t to_next) {
      const int64_t out = shape->out, outputs = shape->outputs();
      for (int64_t tile = first; tile < last; ++tile) {
        for (int64_t c = 0; c < out; c += lanes) {
          Vector<lanes> above[tile_outputs];
#pragma GCC unroll 4
          for (int i = 0; i < tile_outputs; ++i) {
            const int64_t t = tile_outputs * tile + i;
            above[i] = vector_at<lanes>(t < outputs ? to_y + t * out + c : outside.data());
          }
#pragma GCC unroll 8
          for (int p = 0; p < places; ++p) {
            Vector<lanes> sum{};
#pragma GCC unroll 4
            for (int i = 0; i < tile_outputs; ++i) {
              if (filter<taps>.output[i][p] != 0.0F) sum += filter<taps>.output[i][p] * above[i];
            }
            vector_at<lanes>(to + p * to_next + tile * out + c) = sum;
          }
        }
      }
    }
  };

  // One output channel at a time, `lanes` input channels side by side.
  template <int lanes>
  struct Weight {
    static HEADROOM_KERNEL_BODY void run(const TimeConvolution* shape, const float* weight, int64_t first, int64_t last,
                                         float* to) {
      const int64_t channels = shape->channels, kernel = shape->kernel, stride = shape->stride;
      const int64_t frame = shape->frame(), to_next = shape->out * frame;
      float side_by_side[(most_kernel + most_taps) * lanes] = {};  // behind the kernel's end: 0
      for (int64_t o = first; o < last; ++o) {
        for (int64_t c = 0; c < channels; c += lanes) {
          const float* const from = weight + (o * channels + c) * kernel;
          for (int64_t lane = 0; lane < lanes; ++lane) {
            for (int64_t k = 0; k < kernel; ++k) side_by_side[k * lanes + lane] = from[lane * kernel + k];
          }
          for (int64_t phase = 0; phase < stride; ++phase) {
            Vector<lanes> tap[taps];
#pragma GCC unroll 8
            for (int k = 0; k < taps; ++k) {
              const int64_t at = k * stride + phase;
              tap[k] = vector_at<lanes>(side_by_side + (at < kernel ? at : most_kernel) * lanes);
            }
#pragma GCC unroll 8
            for (int p = 0; p < places; ++p)
              vector_at<lanes>(to + p * to_next + o * frame + phase * channels + c) =
                  combined<lanes>(filter<taps>.weight[p], tap);
          }
        }
      }
    }
  };

  template <int lanes>
  struct WeightGradient {
    static HEADROOM_KERNEL_BODY void run(const TimeConvolution* shape, const float* from, int64_t first, int64_t last,
                                         float* to_weight) {
      const int64_t channels = shape->channels, kernel = shape->kernel, stride = shape->stride;
      const int64_t frame = shape->frame(), to_next = shape->out * frame;
      float side_by_side[most_kernel * lanes];
      for (int64_t o = first; o < last; ++o) {
        for (int64_t c = 0; c < channels; c += lanes) {
          for (int64_t phase = 0; phase < stride; ++phase) {
            Vector<lanes> tap[taps] = {};
#pragma GCC unroll 8
            for (int p = 0; p < places; ++p) {
              const Vector<lanes> place = vector_at<lanes>(from + p * to_next + o * frame + phase * channels + c);
#pragma GCC unroll 8
              for (int k = 0; k < taps; ++k) {
                if (filter<taps>.weight[p][k] != 0.0F) tap[k] += filter<taps>.weight[p][k] * place;
              }
            }
            for (int k = 0; k < taps; ++k) {
              const int64_t at = k * stride + phase;
              if (at < kernel) vector_at<lanes>(side_by_side + at * lanes) = tap[k];
            }
          }
          float* const to = to_weight + (o * channels + c) * kernel;
          for (int64_t lane = 0; lane < lanes; ++lane) {
            for (int64_t k = 0; k < kernel; ++k) to[lane * kernel + k] = side_by_side[k * lanes + lane];
          }
        }
      }
    }
  };

  // A frame lies in its own tile and, as one of the last of these, in the tile before.
  template <int lanes>
  struct InputGradient {
    static HEADROOM_KERNEL_BODY void run(const TimeConvolution* shape, const float* from, int64_t to_next,
                                         int64_t first, int64_t last, float* to_x) {
      const int64_t frame = shape->frame(), end = shape->time * shape->channels, tiles = shape->tiles();
      for (int64_t group = first; group < last; ++group) {
        for (int64_t c = 0; c < frame; c += lanes) {
          Vector<lanes> sum[tile_outputs] = {};
          if (group < tiles) add<lanes, 0>(from + group * frame + c, to_next, sum);
          if (group >= 1 && group <= tiles) add<lanes, tile_outputs>(from + (group - 1) * frame + c, to_next, sum);
          for (int64_t i = 0; i < tile_outputs; ++i) {
            const int64_t at = (tile_outputs * group + i) * frame + c;
            if (at < end) vector_at<lanes>(to_x + at) = sum[i];
          }
        }
      }
    }

    // Frames [skipped, skipped + 4) of a tile.
    template <int width, int skipped>
    static HEADROOM_KERNEL_BODY void add(const float* from, int64_t to_next, Vector<width> (&sum)[tile_outputs]) {
#pragma GCC unroll 8
      for (int p = 0; p < places; ++p) {
        const Vector<width> place = vector_at<width>(from + p * to_next);
#pragma GCC unroll 4
        for (int i = 0; i < tile_outputs; ++i) {
          if (i + skipped < places && filter<taps>.input[p][(i + skipped) % places] != 0.0F)
            sum[i] += filter<taps>.input[p][(i + skipped) % places] * place;
        }
      }
    }
  };
};

// Calls run(OfTaps<taps>()) for the taps of a shape.
template <class Run>
void with_taps(int64_t taps, const Run& run) {
  if (taps == 2) return run(OfTaps<2>());
  if (taps == 3) return run(OfTaps<3>());
  if (taps == 4) return run(OfTaps<4>());
  run(OfTaps<5>());
}

}  // namespace

bool has_winograd(const TimeConvolution& shape) {
  const int64_t lanes = sdk::vector_lanes(), taps = shape.taps();
  return sdk::cpu_isa() != sdk::CpuIsa::baseline && shape.channels % lanes == 0 && shape.out % lanes == 0 &&
         taps >= fewest_taps && taps <= most_taps && shape.kernel <= most_kernel &&
         3 * shape.places() * shape.stride <= 2 * tile_outputs * shape.kernel;
}

void transform_weight(const TimeConvolution& shape, const float* weight, int64_t first, int64_t last, float* to) {
  with_taps(shape.taps(), [&]<int taps>(OfTaps<taps>) {
    if (sdk::vector_lanes() == 16)
      return sdk::run_kernel<typename OfTaps<taps>::template Weight<16>>(&shape, weight, first, last, to);
    sdk::run_kernel<typename OfTaps<taps>::template Weight<8>>(&shape, weight, first, last, to);
  });
}

void transform_weight_gradient(const TimeConvolution& shape, const float* from, int64_t first, int64_t last,
                               float* to_weight) {
  with_taps(shape.taps(), [&]<int taps>(OfTaps<taps>) {
    if (sdk::vector_lanes() == 16)
      return sdk::run_kernel<typename OfTaps<taps>::template WeightGradient<16>>(&shape, from, first, last, to_weight);
    sdk::run_kernel<typename OfTaps<taps>::template WeightGradient<8>>(&shape, from, first, last, to_weight);
  });
}

void transform_input(const TimeConvolution& shape, const float* x, int64_t first, int64_t last, float* to,
                     int64_t to_next) {
  with_taps(shape.taps(), [&]<int taps>(OfTaps<taps>) {
    if (sdk::vector_lanes() == 16)
      return sdk::run_kernel<typename OfTaps<taps>::template Input<16>>(&shape, x, first, last, to, to_next);
    sdk::run_kernel<typename OfTaps<taps>::template Input<8>>(&shape, x, first, last, to, to_next);
  });
}

void transform_output(const TimeConvolution& shape, const float* from, int64_t to_next, const float* bias,
                      int64_t first, int64_t last, float* y) {
  with_taps(shape.taps(), [&]<int taps>(OfTaps<taps>) {
    if (sdk::vector_lanes() == 16)
      return sdk::run_kernel<typename OfTaps<taps>::template Output<16>>(&shape, from, to_next, bias, first, last, y);
    sdk::run_kernel<typename OfTaps<taps>::template Output<8>>(&shape, from, to_next, bias, first, last, y);
  });
}

void transform_output_gradient(const TimeConvolution& shape, const float* to_y, int64_t first, int64_t last, float* to,
                               int64_t to_next) {
  with_taps(shape.taps(), [&]<int taps>(OfTaps<taps>) {
    if (sdk::vector_lanes() == 16)
      return sdk::run_kernel<typename OfTaps<taps>::template OutputGradient<16>>(&shape, to_y, first, last, to,
                                                                                 to_next);
    sdk::run_kernel<typename OfTaps<taps>::template OutputGradient<8>>(&shape, to_y, first, last, to, to_next);
  });
}

void transform_input_gradient(const TimeConvolution& shape, const float* from, int64_t to_next, int64_t first,
                              int64_t last, float* to_x) {
  with_taps(shape.taps(), [&]<int taps>(OfTaps<taps>) {
    if (sdk::vector_lanes() == 16)
      return sdk::run_kernel<typename OfTaps<taps>::template InputGradient<16>>(&shape, from, to_next, first, last,
                                                                                to_x);
    sdk::run_kernel<typename OfTaps<taps>::template InputGradient<8>>(&shape, from, to_next, first, last, to_x);
  });
}

}  // namespace headroom
