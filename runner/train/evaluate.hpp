// Loss and metrics of a split with the weights as they are: no gradients, no augmentation, the same samples every time.
#pragma once

#include <functional>
#include <optional>

#include "metrics/examples.hpp"
#include "metrics/metrics.hpp"
#include "train/retry.hpp"
#include "train/setup.hpp"

namespace headroom {

// Runs micro-batches of retry.size(), and repeats a pass that ran out of memory. Returns nullopt where `stop`, asked
// between two batches, returns true. `examples` may be NULL; otherwise it takes the samples that it wants.
std::optional<StepSums> evaluate(const Setup& setup, Loader& loader, int64_t step, Retry& retry,
                                 const std::function<bool(int64_t done)>& stop, Examples* examples = nullptr);

}  // namespace headroom
