#include "upsampling.hpp"

#include <algorithm>
#include <cstring>

namespace spike_hdf5 {

namespace {

using Floats = float __attribute__((vector_size(16)));
constexpr uint64_t row_lanes = 4;

void blend(const float* above, const float* below, float weight, uint64_t count, float* to) {
  uint64_t i = 0;
  for (; i + row_lanes <= count; i += row_lanes) {
    Floats a, b;
    std::memcpy(&a, above + i, sizeof a);
    std::memcpy(&b, below + i, sizeof b);
    const Floats mixed = a * (1.0f - weight) + b * weight;
    std::memcpy(to + i, &mixed, sizeof mixed);
  }
  for (; i < count; ++i) to[i] = above[i] * (1.0f - weight) + below[i] * weight;
}

}  // namespace

Upsampling::Taps Upsampling::taps(uint64_t native, uint64_t full, uint64_t begin, uint64_t count) {
  Taps taps;
  const float scale = static_cast<float>(native) / static_cast<float>(full);
  for (uint64_t i = begin; i < begin + count; ++i) {
    const float place = std::max(0.0f, scale * (static_cast<float>(i) + 0.5f) - 0.5f);
    const uint64_t low = std::min(static_cast<uint64_t>(place), native - 1), high = std::min(low + 1, native - 1);
    if (i == begin) taps.first = low;
    taps.count = high + 1 - taps.first;
    taps.low.push_back(static_cast<uint32_t>(low - taps.first));
    taps.high.push_back(static_cast<uint32_t>(high - taps.first));
    taps.weight.push_back(place - static_cast<float>(low));
  }
  return taps;
}

Upsampling::Upsampling(const Size& native, const Size& full, const Box& part)
    : rows_(taps(native.height, full.height, part.top, part.size.height)),
      columns_(taps(native.width, full.width, part.left, part.size.width)),
      source_{rows_.first, columns_.first, {rows_.count, columns_.count}} {}

// Two rows are at hand at a time, one even and one odd.
const float* Upsampling::widened(const float* native, uint64_t row) {
  WideRow& wide = wide_[row % 2];
  if (wide.row == row) return wide.values.data();
  wide.row = row;
  wide.values.resize(columns_.low.size());
  const float* from = native + row * source_.size.width;
  for (std::size_t i = 0; i < wide.values.size(); ++i) {
    const float weight = columns_.weight[i];
    wide.values[i] = from[columns_.low[i]] * (1.0f - weight) + from[columns_.high[i]] * weight;
  }
  return wide.values.data();
}

void Upsampling::apply(const float* native, float* to) {
  wide_[0].row = wide_[1].row = UINT64_MAX;
  const uint64_t width = columns_.low.size();
  for (std::size_t i = 0; i < rows_.low.size(); ++i) {
    const float *above = widened(native, rows_.low[i]), *below = widened(native, rows_.high[i]);
    blend(above, below, rows_.weight[i], width, to + i * width);
  }
}

}  // namespace spike_hdf5
