// Loss and metrics of a split with the weights as they are: no gradients, no augmentation, the same samples every time.
#pragma once

#include <functional>
#include <optional>

#include "metrics/examples.hpp"
#include "metrics/metrics.hpp"
#include "train/retry.hpp"
#include "train/setup.hpp"

namespace headroom {

// Runs the micro-batches of `retry`; what runs out of memory is repeated. nullopt when `stop` answered true between two
// batches. `examples`, where there are any, take the samples they want.
std::optional<StepSums> evaluate(const Setup& setup, Loader& loader, int64_t step, Retry& retry,
                                 const std::function<bool(int64_t done)>& stop, Examples* examples = nullptr);

}  // namespace headroom
