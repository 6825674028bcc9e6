// Bilinear interpolation (align_corners = false) of a part of a frame: as interpolating the whole frame and cutting the
// part out would give, to the last bit.
#pragma once

#include <cstdint>
#include <vector>

#include "box.hpp"

namespace spike_hdf5 {

class Upsampling {
 public:
  // From frames of size `native` to `part` of frames of size `full`.
  Upsampling(const Size& native, const Size& full, const Box& part);

  const Box& source() const { return source_; }  // what is needed of a native frame

  // `native`: the pixels of source(); `to`: those of the part.
  void apply(const float* native, float* to);

 private:
  // Output i is (1 - weight) x element low + weight x element high, counted from the first one needed.
  struct Taps {
    std::vector<uint32_t> low, high;
    std::vector<float> weight;
    uint64_t first = 0, count = 0;  // of the input
  };
  static Taps taps(uint64_t native, uint64_t full, uint64_t begin, uint64_t count);
  const float* widened(const float* native, uint64_t row);

  Taps rows_, columns_;
  Box source_;
  // The native rows last brought to the part's width.
  struct WideRow {
    uint64_t row = UINT64_MAX;
    std::vector<float> values;
  } wide_[2];
};

}  // namespace spike_hdf5
