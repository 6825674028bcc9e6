#include "winograd_kernel.hpp"

#include <array>

#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::Vector, sdk::vector_at;

constexpr int64_t tile_outputs = 4, fewest_taps = 2, most_taps = 5, most_kernel = 64;
constexpr std::array<double, 7> points{0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5};  // the last place is at infinity
constexpr std::array<float, 64> outside{};                                     // past the end of a sample

template <size_t rows, size_t columns>
using Matrix = std::array<std::array<float, columns>, rows>;

template <size_t rows, size_t columns>
constexpr Matrix<columns, rows> transposed(const Matrix<rows, columns>& matrix) {
  Matrix<columns, rows> result{};
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) result[j][i] = matrix[i][j];
  }
  return result;
}

// y = A^T ((G w) * (B^T x)) of 4 outputs: Toom and Cook's way, transposed.
template <int taps>
struct Filter {
  static constexpr int places = taps + 3, finite = places - 1;
  Matrix<places, places> input{};         // B^T
  Matrix<tile_outputs, places> output{};  // A^T
  Matrix<places, taps> weight{};          // G

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
template <int taps>
constexpr auto input_back = transposed(filter<taps>.input);
template <int taps>
constexpr auto output_back = transposed(filter<taps>.output);
template <int taps>
constexpr auto weight_back = transposed(filter<taps>.weight);

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

// The vectors that begin `stride` apart.
template <int lanes, size_t terms>
HEADROOM_KERNEL_BODY void load(const float* from, int64_t stride, Vector<lanes> (&vectors)[terms]) {
#pragma GCC unroll 8
  for (size_t j = 0; j < terms; ++j) vectors[j] = vector_at<lanes>(from + static_cast<int64_t>(j) * stride);
}

// Each row of `matrix` with `vectors`, `stride` apart.
template <int lanes, size_t rows, size_t terms>
HEADROOM_KERNEL_BODY void store(const Matrix<rows, terms>& matrix, const Vector<lanes> (&vectors)[terms], float* to,
                                int64_t stride) {
#pragma GCC unroll 8
  for (size_t i = 0; i < rows; ++i)
    vector_at<lanes>(to + static_cast<int64_t>(i) * stride) = combined<lanes>(matrix[i], vectors);
}

template <int taps, int lanes>
struct Input {
  static HEADROOM_KERNEL_BODY void run(const WinogradShape* shape, const float* x, int64_t first, int64_t last,
                                       float* to, int64_t to_next) {
    const int64_t frame = shape->frame(), end = shape->time * shape->channels;
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t begin = tile_outputs * tile * frame;
      for (int64_t c = 0; c < frame; c += lanes) {
        Vector<lanes> frames[taps + 3];
#pragma GCC unroll 8
        for (int j = 0; j < taps + 3; ++j) {
          const int64_t at = begin + j * frame + c;
          frames[j] = vector_at<lanes>(at < end ? x + at : outside.data());
        }
        store<lanes>(filter<taps>.input, frames, to + tile * frame + c, to_next);
      }
    }
  }
};

template <int taps, int lanes>
struct Output {
  static HEADROOM_KERNEL_BODY void run(const WinogradShape* shape, const float* from, int64_t to_next,
                                       const float* bias, int64_t first, int64_t last, float* y) {
    const int64_t out = shape->out, outputs = shape->outputs();
    for (int64_t tile = first; tile < last; ++tile) {
      for (int64_t c = 0; c < out; c += lanes) {
        Vector<lanes> places[taps + 3];
        load<lanes>(from + tile * out + c, to_next, places);
        const Vector<lanes> base = vector_at<lanes>(bias + c);
#pragma GCC unroll 4
        for (int i = 0; i < tile_outputs; ++i) {
          const int64_t t = tile_outputs * tile + i;
          if (t < outputs) vector_at<lanes>(y + t * out + c) = base + combined<lanes>(filter<taps>.output[i], places);
        }
      }
    }
  }
};

template <int taps, int lanes>
struct OutputGradient {
  static HEADROOM_KERNEL_BODY void run(const WinogradShape* shape, const float* to_y, int64_t first, int64_t last,
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
        store<lanes>(output_back<taps>, above, to + tile * out + c, to_next);
      }
    }
  }
};

// A frame lies in its own tile and, as one of the last of these, in the tile before.
template <int taps, int lanes>
struct InputGradient {
  static HEADROOM_KERNEL_BODY void run(const WinogradShape* shape, const float* from, int64_t to_next, int64_t first,
                                       int64_t last, float* to_x) {
    const int64_t frame = shape->frame(), end = shape->time * shape->channels, tiles = shape->tiles();
    for (int64_t group = first; group < last; ++group) {
      for (int64_t c = 0; c < frame; c += lanes) {
        Vector<lanes> sum[tile_outputs] = {}, places[taps + 3];
        if (group < tiles) {
          load<lanes>(from + group * frame + c, to_next, places);
#pragma GCC unroll 4
          for (int i = 0; i < tile_outputs; ++i) sum[i] = combined<lanes>(input_back<taps>[i], places);
        }
        if (group >= 1 && group <= tiles) {
          load<lanes>(from + (group - 1) * frame + c, to_next, places);
#pragma GCC unroll 4
          for (int i = tile_outputs; i < taps + 3; ++i)
            sum[i - tile_outputs] += combined<lanes>(input_back<taps>[i], places);
        }
        for (int64_t i = 0; i < tile_outputs; ++i) {
          const int64_t at = (tile_outputs * group + i) * frame + c;
          if (at < end) vector_at<lanes>(to_x + at) = sum[i];
        }
      }
    }
  }
};

// One output channel at a time, `lanes` input channels side by side.
template <int taps, int lanes>
struct Weight {
  static HEADROOM_KERNEL_BODY void run(const WinogradShape* shape, const float* weight, int64_t first, int64_t last,
                                       float* to) {
    const int64_t channels = shape->channels, kernel = shape->kernel, stride = shape->stride;
    const int64_t frame = shape->frame(), to_next = shape->out * frame;
    float side_by_side[2 * most_kernel * lanes] = {};  // behind the kernel's end: 0
    for (int64_t o = first; o < last; ++o) {
      for (int64_t c = 0; c < channels; c += lanes) {
        const float* const from = weight + (o * channels + c) * kernel;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          for (int64_t k = 0; k < kernel; ++k) side_by_side[k * lanes + lane] = from[lane * kernel + k];
        }
        for (int64_t phase = 0; phase < stride; ++phase) {
          Vector<lanes> tap[taps];
          load<lanes>(side_by_side + phase * lanes, stride * lanes, tap);
          store<lanes>(filter<taps>.weight, tap, to + o * frame + phase * channels + c, to_next);
        }
      }
    }
  }
};

template <int taps, int lanes>
struct WeightGradient {
  static HEADROOM_KERNEL_BODY void run(const WinogradShape* shape, const float* from, int64_t first, int64_t last,
                                       float* to_weight) {
    const int64_t channels = shape->channels, kernel = shape->kernel, stride = shape->stride;
    const int64_t frame = shape->frame(), to_next = shape->out * frame;
    float side_by_side[2 * most_kernel * lanes];
    for (int64_t o = first; o < last; ++o) {
      for (int64_t c = 0; c < channels; c += lanes) {
        for (int64_t phase = 0; phase < stride; ++phase) {
          Vector<lanes> places[taps + 3];
          load<lanes>(from + o * frame + phase * channels + c, to_next, places);
          store<lanes>(weight_back<taps>, places, side_by_side + phase * lanes, stride * lanes);
        }
        float* const to = to_weight + (o * channels + c) * kernel;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          for (int64_t k = 0; k < kernel; ++k) to[lane * kernel + k] = side_by_side[k * lanes + lane];
        }
      }
    }
  }
};

template <template <int, int> class Kernel, int taps, class... Arguments>
void run_with_taps(const Arguments&... arguments) {
  if (sdk::vector_lanes() == 16) return sdk::run_kernel<Kernel<taps, 16>>(arguments...);
  sdk::run_kernel<Kernel<taps, 8>>(arguments...);
}

template <template <int, int> class Kernel, class... Arguments>
void run(const WinogradShape& shape, const Arguments&... arguments) {
  if (shape.taps() == 2) return run_with_taps<Kernel, 2>(&shape, arguments...);
  if (shape.taps() == 3) return run_with_taps<Kernel, 3>(&shape, arguments...);
  if (shape.taps() == 4) return run_with_taps<Kernel, 4>(&shape, arguments...);
  run_with_taps<Kernel, 5>(&shape, arguments...);
}

}  // namespace

bool has_winograd(const WinogradShape& shape) {
  const int64_t lanes = sdk::vector_lanes(), taps = shape.taps();
  return sdk::cpu_isa() != sdk::CpuIsa::baseline && shape.channels % lanes == 0 && shape.out % lanes == 0 &&
         taps >= fewest_taps && taps <= most_taps && shape.kernel <= most_kernel &&
         3 * shape.places() * shape.stride <= 2 * tile_outputs * shape.kernel;
}

void transform_weight(const WinogradShape& shape, const float* weight, int64_t first, int64_t last, float* to) {
  run<Weight>(shape, weight, first, last, to);
}

void transform_weight_gradient(const WinogradShape& shape, const float* from, int64_t first, int64_t last,
                               float* to_weight) {
  run<WeightGradient>(shape, from, first, last, to_weight);
}

void transform_input(const WinogradShape& shape, const float* x, int64_t first, int64_t last, float* to,
                     int64_t to_next) {
  run<Input>(shape, x, first, last, to, to_next);
}

void transform_output(const WinogradShape& shape, const float* from, int64_t to_next, const float* bias, int64_t first,
                      int64_t last, float* y) {
  run<Output>(shape, from, to_next, bias, first, last, y);
}

void transform_output_gradient(const WinogradShape& shape, const float* to_y, int64_t first, int64_t last, float* to,
                               int64_t to_next) {
  run<OutputGradient>(shape, to_y, first, last, to, to_next);
}

void transform_input_gradient(const WinogradShape& shape, const float* from, int64_t to_next, int64_t first,
                              int64_t last, float* to_x) {
  run<InputGradient>(shape, from, to_next, first, last, to_x);
}

}  // namespace headroom
