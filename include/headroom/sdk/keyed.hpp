// Keyed randomness on tensors: the values drawn for sample i are a function of (the sample's key, site, element) alone.
// They are equal under any split of the batch, retry, recomputation and resume, and on any device, because they are
// made on the CPU. Needs LibTorch.
//
//   x = dropout(call, "encoder.0"_site, x, 0.1);   // leading axis of x: the batch
#pragma once

#include <ATen/Parallel.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "headroom/sdk/call.hpp"
#include "headroom/sdk/draws.hpp"
#include "headroom/sdk/error.hpp"

namespace headroom::sdk {

namespace detail {

inline constexpr int kLanes = 16;

// The words of blocks [first, first + kLanes) of stream (key, site): word w of block b at out[w][b]. As hr_philox, in a
// form that the compiler turns into vector instructions.
inline void philox_lanes(uint64_t key, uint64_t site, uint64_t first,
                         std::array<std::array<uint32_t, kLanes>, 4>& out) {
  auto& [c0, c1, c2, c3] = out;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t block = first + static_cast<uint64_t>(lane);
    c0[lane] = static_cast<uint32_t>(block);
    c1[lane] = static_cast<uint32_t>(block >> 32);
    c2[lane] = static_cast<uint32_t>(site);
    c3[lane] = static_cast<uint32_t>(site >> 32);
  }
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[lane], p1 = uint64_t{0xCD9E8D57u} * c2[lane];
      c0[lane] = static_cast<uint32_t>(p1 >> 32) ^ c1[lane] ^ k0;
      c2[lane] = static_cast<uint32_t>(p0 >> 32) ^ c3[lane] ^ k1;
      c1[lane] = static_cast<uint32_t>(p1);
      c3[lane] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// Calls give(element, word) for elements [0, count) of stream (key, site), in order: four elements a block.
template <class Give>
void for_each_word(uint64_t key, uint64_t site, int64_t count, Give&& give) {
  std::array<std::array<uint32_t, kLanes>, 4> words;
  for (int64_t begin = 0; begin < count; begin += 4 * kLanes) {
    philox_lanes(key, site, static_cast<uint64_t>(begin / 4), words);
    const int64_t end = std::min<int64_t>(count, begin + 4 * kLanes);
    for (int64_t i = begin; i < end; ++i) give(i, words[i & 3][(i - begin) >> 2]);
  }
}

// fill(i, row) for every sample i, rows of `elements` values, over LibTorch's threads.
template <class T, class Fill>
void for_each_sample(const Call& call, at::Tensor& values, Fill&& fill) {
  const int64_t samples = static_cast<int64_t>(call.count()), elements = samples > 0 ? values.numel() / samples : 0;
  T* data = values.data_ptr<T>();
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, elements));
  at::parallel_for(0, samples, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fill(i, data + i * elements, elements);
  });
}

inline void require_batch(const Call& call, const at::Tensor& x, double p) {
  if (x.dim() < 1 || x.size(0) != static_cast<int64_t>(call.count())) {
    throw Error(HR_INTERNAL, "keyed randomness needs a tensor whose leading axis is the batch of " +
                                 std::to_string(call.count()) + " samples");
  }
  if (!(p >= 0.0 && p <= 1.0))
    throw Error(HR_INVALID_ARGUMENT, "a dropout probability must lie in [0, 1], not be " + std::to_string(p));
}

// true with probability 1 - p: the words below the threshold are dropped.
inline at::Tensor keep_mask(const Call& call, uint64_t site, std::vector<int64_t> shape, double p) {
  at::Tensor mask = at::empty(shape, at::kBool);
  const auto threshold = static_cast<uint64_t>(std::llround(p * 0x1p32));
  for_each_sample<bool>(call, mask, [&](int64_t i, bool* row, int64_t elements) {
    for_each_word(call.key(i), site, elements, [&](int64_t e, uint32_t word) { row[e] = word >= threshold; });
  });
  return mask.to(call.device());
}

inline at::Tensor drop(const Call& call, uint64_t site, const at::Tensor& x, std::vector<int64_t> shape, double p) {
  if (!call.training() || p == 0.0) return x;
  if (p == 1.0) return x * 0.0;
  return x * keep_mask(call, site, std::move(shape), p) * (1.0 / (1.0 - p));
}

inline std::vector<int64_t> batch_shape(const Call& call, at::IntArrayRef per_sample) {
  std::vector<int64_t> shape{static_cast<int64_t>(call.count())};
  shape.insert(shape.end(), per_sample.begin(), per_sample.end());
  return shape;
}

}  // namespace detail

// Inverted dropout; the identity outside training. Backward keeps one byte an element.
inline at::Tensor dropout(const Call& call, uint64_t site, const at::Tensor& x, double p) {
  detail::require_batch(call, x, p);
  return detail::drop(call, site, x, x.sizes().vec(), p);
}

// Stochastic depth: drops all of a sample, or scales it by 1 / (1 - p); the identity outside training.
inline at::Tensor drop_path(const Call& call, uint64_t site, const at::Tensor& x, double p) {
  detail::require_batch(call, x, p);
  std::vector<int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return detail::drop(call, site, x, std::move(shape), p);
}

// Standard normal values of shape [batch, shape_per_sample...], on the call's device. Drawn in every mode.
inline at::Tensor normal(const Call& call, uint64_t site, at::IntArrayRef shape_per_sample,
                         at::ScalarType dtype = at::kFloat) {
  at::Tensor values = at::empty(detail::batch_shape(call, shape_per_sample), at::kDouble);
  detail::for_each_sample<double>(call, values, [&](int64_t i, double* row, int64_t elements) {
    double radius = 0.0, angle = 0.0;
    // Box-Muller: words 2k and 2k + 1 make elements 2k and 2k + 1.
    detail::for_each_word(call.key(i), site, elements + (elements & 1), [&](int64_t e, uint32_t word) {
      if ((e & 1) == 0) {
        radius = std::sqrt(-2.0 * std::log((word + 0.5) * 0x1p-32));
        return;
      }
      angle = 2.0 * std::numbers::pi * (word * 0x1p-32);
      row[e - 1] = radius * std::cos(angle);
      if (e < elements) row[e] = radius * std::sin(angle);
    });
  });
  return values.to(call.device(), dtype);
}

// Uniform values in [0, 1) of shape [batch, shape_per_sample...], on the call's device. Drawn in every mode. Of float16
// and bfloat16 as many bits as they hold: rounded ones would be 1 now and then.
inline at::Tensor uniform(const Call& call, uint64_t site, at::IntArrayRef shape_per_sample,
                          at::ScalarType dtype = at::kFloat) {
  at::Tensor values = at::empty(detail::batch_shape(call, shape_per_sample), at::kFloat);
  const uint32_t held = dtype == at::kHalf       ? ~uint32_t{0} << 21
                        : dtype == at::kBFloat16 ? ~uint32_t{0} << 24
                                                 : ~uint32_t{0};
  detail::for_each_sample<float>(call, values, [&](int64_t i, float* row, int64_t elements) {
    detail::for_each_word(call.key(i), site, elements,
                          [&](int64_t e, uint32_t word) { row[e] = hr_uniform_f32(word & held); });
  });
  return values.to(call.device(), dtype);
}

}  // namespace headroom::sdk
