// Loss and metrics of a split with the weights as they are: no gradients, no augmentation, the same samples every time.
//
// What goes through the model at once is not training's: without backward a pass keeps little, and few samples at a
// time leave a processor waiting. Setup::loader_options() reads small samples in larger batches, and a plan lets a run
// evaluate as many at once as take half of the memory that was measured for training. Speed itself is not measured: the
// choice would differ from run to run, and with it the last bits of a metric. A fixed train.micro_batch holds here too.
//
// Gradients are off by a NoGradGuard and not in InferenceMode: a plugin may keep a tensor that it made in an
// evaluation, such as a table of positions, and a later training pass could not save an inference tensor for backward.
// Nor would such tensors count writes, by which the host sees a model that changes its inputs. It was no faster where
// measured.
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
