#include "tds_kernel.hpp"

#include <algorithm>
#include <cstring>

#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::Vector, sdk::vector_at;

// As many accumulators as 16 registers have room for beside a step of the input and the taps.
constexpr int64_t steps_at_once = 3, vectors_at_once = 4;

bool suits(const TdsShape& shape, int64_t lanes) {
  const int64_t width = shape.width;
  return (lanes % width == 0 || width % lanes == 0) && shape.features() % lanes == 0;
}
// 0: none.
int64_t lanes_for(const TdsShape& shape) {
  if (sdk::cpu_isa() == sdk::CpuIsa::avx512 && suits(shape, 16)) return 16;
  return suits(shape, 8) ? 8 : 0;
}

// Vectors that hold one channel's places; 1 where a vector holds several channels.
HEADROOM_KERNEL_BODY int64_t parts_of(const TdsShape& shape, int64_t lanes) {
  return shape.width > lanes ? shape.width / lanes : 1;
}

// x [time, features] as [channel, part, padding + time + padding] vectors, each with the places of one channel,
// repeated to fill it.
template <int lanes>
HEADROOM_KERNEL_BODY void spread(const TdsShape& shape, const float* x, int64_t time, int64_t padding, float* to) {
  const int64_t parts = parts_of(shape, lanes), whole = time + 2 * padding, width = shape.width;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t part = 0; part < parts; ++part) {
      float* const row = to + (c * parts + part) * whole * lanes;
      std::memset(row, 0, static_cast<size_t>(padding * lanes) * sizeof(float));
      std::memset(row + (padding + time) * lanes, 0, static_cast<size_t>(padding * lanes) * sizeof(float));
      for (int64_t t = 0; t < time; ++t) {
        const float* const from = x + t * shape.features() + c * width + part * lanes;
        float* const vector = row + (padding + t) * lanes;
        for (int64_t lane = 0; lane < lanes; lane += width) {
          for (int64_t p = 0; p < std::min<int64_t>(width, lanes); ++p) vector[lane + p] = from[p];
        }
      }
    }
  }
}

struct Convolution {
  const TdsWeights* weights;
  const float* spread;  // [channel, part, whole]
  int64_t whole;        // steps of the input
  float* y;
};

// `steps` steps of `vectors` vectors of y, from step `t` and vector `first` of the part on. `across`: a tap is a vector
// of its own, else one number for all lanes.
template <int lanes, bool across, int64_t steps, int64_t vectors>
HEADROOM_KERNEL_BODY void tile(const Convolution& c, int64_t part, int64_t first, int64_t t) {
  const TdsShape& shape = c.weights->shape;
  const int64_t parts = parts_of(shape, lanes), features = shape.features(), kernel = shape.kernel;
  const int64_t row = across ? features : shape.channels;
  Vector<lanes> sum[steps][vectors];
  for (int64_t v = 0; v < vectors; ++v) {
    const Vector<lanes> bias = vector_at<lanes>(c.weights->bias.data() + ((first + v) * parts + part) * lanes);
    for (int64_t s = 0; s < steps; ++s) sum[s][v] = bias;
  }
  for (int64_t channel = 0; channel < shape.channels; ++channel) {
    const float* const x = c.spread + ((channel * parts + part) * c.whole + t) * lanes;
    const float* const taps = c.weights->taps.data() + channel * kernel * row + first * (across ? lanes : 1);
    for (int64_t k = 0; k < kernel; ++k) {
      Vector<lanes> tap[vectors];
      for (int64_t v = 0; v < vectors; ++v) {
        if constexpr (across)
          tap[v] = vector_at<lanes>(taps + k * row + v * lanes);
        else
          tap[v] = Vector<lanes>{} + taps[k * row + v];
      }
      for (int64_t s = 0; s < steps; ++s) {
        const Vector<lanes> in = vector_at<lanes>(x + (k + s) * lanes);
        for (int64_t v = 0; v < vectors; ++v) sum[s][v] += tap[v] * in;
      }
    }
  }
  for (int64_t s = 0; s < steps; ++s) {
    for (int64_t v = 0; v < vectors; ++v)
      vector_at<lanes>(c.y + (t + s) * features + ((first + v) * parts + part) * lanes) = sum[s][v];
  }
}

template <int lanes, bool across, int64_t vectors>
HEADROOM_KERNEL_BODY void all_steps(const Convolution& c, int64_t part, int64_t first) {
  const int64_t steps = c.whole - c.weights->shape.kernel + 1;
  int64_t t = 0;
  for (; t + steps_at_once <= steps; t += steps_at_once) tile<lanes, across, steps_at_once, vectors>(c, part, first, t);
  for (; t < steps; ++t) tile<lanes, across, 1, vectors>(c, part, first, t);
}

template <int lanes, bool across>
HEADROOM_KERNEL_BODY void all_vectors(const Convolution& c) {
  const TdsShape& shape = c.weights->shape;
  const int64_t parts = parts_of(shape, lanes), vectors = shape.features() / (lanes * parts);
  for (int64_t part = 0; part < parts; ++part) {
    int64_t v = 0;
    for (; v + vectors_at_once <= vectors; v += vectors_at_once) all_steps<lanes, across, vectors_at_once>(c, part, v);
    for (; v < vectors; ++v) all_steps<lanes, across, 1>(c, part, v);
  }
}

template <int lanes>
struct Convolve {
  static HEADROOM_KERNEL_BODY void run(const TdsWeights* weights, const float* x, int64_t time, int64_t padding,
                                       float* scratch, float* y) {
    spread<lanes>(weights->shape, x, time, padding, scratch);
    const Convolution c{weights, scratch, time + 2 * padding, y};
    if (weights->shape.width < lanes)
      all_vectors<lanes, true>(c);
    else
      all_vectors<lanes, false>(c);
  }
};

struct WeightGradient {
  TdsShape shape;
  const float *spread, *to_y;
  int64_t time;
  float* sums;  // [in channel, kernel, features]
};

template <int lanes, int64_t taps, int64_t vectors>
HEADROOM_KERNEL_BODY void tap_tile(const WeightGradient& g, int64_t channel, int64_t k, int64_t part, int64_t first) {
  const int64_t parts = parts_of(g.shape, lanes), features = g.shape.features();
  const float* const x = g.spread + ((channel * parts + part) * g.time + k) * lanes;
  Vector<lanes> sum[taps][vectors] = {};
  for (int64_t t = 0; t < g.time - g.shape.kernel + 1; ++t) {
    Vector<lanes> to[vectors];
    for (int64_t v = 0; v < vectors; ++v)
      to[v] = vector_at<lanes>(g.to_y + t * features + ((first + v) * parts + part) * lanes);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const Vector<lanes> in = vector_at<lanes>(x + (t + tap) * lanes);
      for (int64_t v = 0; v < vectors; ++v) sum[tap][v] += to[v] * in;
    }
  }
  for (int64_t tap = 0; tap < taps; ++tap) {
    float* const row = g.sums + (channel * g.shape.kernel + k + tap) * features;
    for (int64_t v = 0; v < vectors; ++v) vector_at<lanes>(row + ((first + v) * parts + part) * lanes) += sum[tap][v];
  }
}

template <int lanes, int64_t vectors>
HEADROOM_KERNEL_BODY void all_taps(const WeightGradient& g, int64_t part, int64_t first) {
  for (int64_t channel = 0; channel < g.shape.channels; ++channel) {
    int64_t k = 0;
    for (; k + steps_at_once <= g.shape.kernel; k += steps_at_once)
      tap_tile<lanes, steps_at_once, vectors>(g, channel, k, part, first);
    for (; k < g.shape.kernel; ++k) tap_tile<lanes, 1, vectors>(g, channel, k, part, first);
  }
}

template <int lanes>
struct AddWeightGradient {
  static HEADROOM_KERNEL_BODY void run(const TdsShape* shape, const float* x, int64_t time, const float* to_y,
                                       float* scratch, float* sums) {
    spread<lanes>(*shape, x, time, 0, scratch);
    const WeightGradient g{*shape, scratch, to_y, time, sums};
    const int64_t parts = parts_of(*shape, lanes), vectors = shape->features() / (lanes * parts);
    for (int64_t part = 0; part < parts; ++part) {
      int64_t v = 0;
      for (; v + vectors_at_once <= vectors; v += vectors_at_once) all_taps<lanes, vectors_at_once>(g, part, v);
      for (; v < vectors; ++v) all_taps<lanes, 1>(g, part, v);
    }
  }
};

}  // namespace

bool has_tds_kernel(const TdsShape& shape) { return lanes_for(shape) != 0; }

int64_t tds_scratch_size(const TdsShape& shape, int64_t time) {
  const int64_t lanes = lanes_for(shape);
  return shape.channels * parts_of(shape, lanes) * (time + 2 * (shape.kernel - 1)) * lanes;
}

TdsWeights TdsWeights::forward(const TdsShape& shape, const float* weight, const float* bias) {
  TdsWeights result{shape, {}, std::vector<float>(static_cast<size_t>(shape.features()))};
  const int64_t repeats = shape.width < lanes_for(shape) ? shape.width : 1;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t k = 0; k < shape.kernel; ++k) {
      for (int64_t o = 0; o < shape.channels; ++o)
        result.taps.insert(result.taps.end(), static_cast<size_t>(repeats),
                           weight[(o * shape.channels + c) * shape.kernel + k]);
    }
  }
  for (int64_t f = 0; bias != nullptr && f < shape.features(); ++f)
    result.bias[static_cast<size_t>(f)] = bias[f / shape.width];
  return result;
}

TdsWeights TdsWeights::backward(const TdsShape& shape, const float* weight) {
  std::vector<float> turned(static_cast<size_t>(shape.weights()));
  for (int64_t o = 0; o < shape.channels; ++o) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      for (int64_t k = 0; k < shape.kernel; ++k)
        turned[static_cast<size_t>((c * shape.channels + o) * shape.kernel + shape.kernel - 1 - k)] =
            weight[(o * shape.channels + c) * shape.kernel + k];
    }
  }
  return forward(shape, turned.data(), nullptr);
}

void convolve_tds(const TdsWeights& weights, const float* x, int64_t time, int64_t padding, float* scratch, float* y) {
  if (lanes_for(weights.shape) == 16) return sdk::run_kernel<Convolve<16>>(&weights, x, time, padding, scratch, y);
  sdk::run_kernel<Convolve<8>>(&weights, x, time, padding, scratch, y);
}

void add_tds_weight_gradient(const TdsShape& shape, const float* x, int64_t time, const float* to_y, float* scratch,
                             float* sums) {
  if (lanes_for(shape) == 16) return sdk::run_kernel<AddWeightGradient<16>>(&shape, x, time, to_y, scratch, sums);
  sdk::run_kernel<AddWeightGradient<8>>(&shape, x, time, to_y, scratch, sums);
}

void finish_tds_weight_gradient(const TdsShape& shape, const float* sums, float* to_weight) {
  for (int64_t o = 0; o < shape.channels; ++o) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      for (int64_t k = 0; k < shape.kernel; ++k) {
        const float* const places = sums + (c * shape.kernel + k) * shape.features() + o * shape.width;
        double sum = 0.0;
        for (int64_t p = 0; p < shape.width; ++p) sum += static_cast<double>(places[p]);
        to_weight[(o * shape.channels + c) * shape.kernel + k] = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace headroom
