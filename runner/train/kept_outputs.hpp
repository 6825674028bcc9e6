// metrics.mode = "full": the outputs of an epoch, kept to be measured by the textbook's formulas. A check of the sums
// that are made online; its memory grows with the epoch.
#pragma once

#include <span>

#include "train/output_moments.hpp"

namespace headroom {

// Copies on the CPU: outputs may lie in a batch's slot.
PairTensors keep(const PairTensors& tensors);

// As OutputMoments has them, by two passes over everything; undefined for nothing.
at::Tensor moments_of(std::span<const PairTensors> kept);

}  // namespace headroom
