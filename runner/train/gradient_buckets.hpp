// Where the gradients of a run of several processes lie: behind each other in a few tensors, so that many of them are
// summed at once, in place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// The memory is that of the gradients, and none beside it but the ends of cache lines.
struct GradientBucket {
  at::Tensor memory;  // flat, of one type
  std::vector<const Parameter*> parameters;
};

inline constexpr int64_t most_bucket_bytes = 1 << 20;

// Gives each of `trainable` its gradient, zero: a view of a bucket, with the strides of its parameter and a version of
// its own. The last parameters are in the first bucket, since backward mostly reaches them first; the order follows
// from the model alone. A gradient above `most_bytes` has a bucket to itself.
std::vector<GradientBucket> make_gradient_buckets(std::span<Parameter* const> trainable,
                                                  int64_t most_bytes = most_bucket_bytes);

}  // namespace headroom
