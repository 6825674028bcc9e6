// One pass of a model over an input, micro-batch by micro-batch as memory allows.
#pragma once

#include <functional>
#include <vector>

#include "train/micro_batches.hpp"
#include "train/predict_input.hpp"

namespace headroom {

using Outputs = std::vector<at::Tensor>;

struct PredictPass {
  std::function<Outputs(const MicroBatchTensors&)> ask;
  // The answer, on the CPU, of samples [first, first + count) of the batch. In order; once each.
  std::function<void(const Batch&, int64_t first, int64_t count, const Outputs&)> take;
};

// The output that holds what the model predicts; REQUIRES that it has one.
size_t prediction_output(const Model& model);

// Asks through headroom.predict/1 and shows every field but `target`, which is to be predicted.
std::function<Outputs(const MicroBatchTensors&)> asking_without(size_t target, const Setup& setup,
                                                                int64_t trained_steps);

// Without gradients. false: stopped by a signal.
bool run_pass(const Setup& setup, PredictInput& input, const PredictPass& pass);

}  // namespace headroom
