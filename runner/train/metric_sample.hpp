// Which batches of an epoch the host's metrics are computed on.
#pragma once

#include "data/order.hpp"

namespace headroom {

// A uniform sample without replacement of `wanted` of `batches`, or all of them: a function of (seed, epoch) only.
// [any]
class MetricSample {
 public:
  MetricSample() : MetricSample(0, 0, 0, 0) {}  // nothing
  MetricSample(uint64_t batches, uint64_t wanted, uint64_t seed, uint64_t epoch);
  bool contains(uint64_t batch) const;  // counted from the epoch's beginning

 private:
  uint64_t wanted_;
  Order order_;
};

}  // namespace headroom
