// What convolutions over time share: their shape, and their samples divided among threads.
#pragma once

#include <ATen/Parallel.h>
#include <algorithm>
#include <cstdint>
#include <torch/torch.h>

#include "time_shape.hpp"

namespace headroom {

// Of x [batch, channels, 1, time] and weight [out, channels, kernel].
inline TimeShape time_shape_of(const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  return {x.size(3), x.size(1), stride, weight.size(2), weight.size(0)};
}

// Calls work(sample, first, last) of [0, each) of each sample, on all threads.
template <class Work>
void over_samples(int64_t samples, int64_t each, const Work& work) {
  at::parallel_for(0, samples * each, std::max<int64_t>(1, each / 8), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t sample = begin / each, last = std::min(end, (sample + 1) * each);
      work(sample, begin - sample * each, last - sample * each);
      begin = last;
    }
  });
}

}  // namespace headroom
