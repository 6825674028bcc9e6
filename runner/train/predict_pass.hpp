// One pass of a model over an input, micro-batch by micro-batch as memory allows.
#pragma once

#include <functional>
#include <vector>

#include "train/predict_input.hpp"
#include "train/window.hpp"

namespace headroom {

using Outputs = std::vector<at::Tensor>;

struct PredictPass {
  std::function<Outputs(const MicroBatchTensors&)> ask;
  // The answer, on the CPU, of samples [first, first + count) of the batch. In order; once each.
  std::function<void(const Batch&, int64_t first, int64_t count, const Outputs&)> take;
};

// Without gradients. false: stopped by a signal.
bool run_pass(const Setup& setup, PredictInput& input, const PredictPass& pass);

}  // namespace headroom
