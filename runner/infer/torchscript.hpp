// Writes a trained model as a TorchScript program, made by tracing: it takes measured values and returns predictions in
// measured units. The program is kept only if it agrees with the model.
#pragma once

#include <filesystem>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "infer/inference.hpp"

namespace headroom {

// Samples to test the program with, as Inference::run() takes them. All have the shapes of Inference::inputs().
struct ScriptTrial {
  std::string what;  // "made-up samples"
  std::vector<at::Tensor> inputs;
};

struct WrittenScript {
  std::vector<std::string> arguments;  // of forward(), in order: the inputs' names as Python identifiers
  std::vector<std::string> outputs;    // what it returns: one tensor, or a tuple of them
  bool any_count = false;              // false: it takes one sample at a time, and refuses more
  double largest_difference = 0.0;     // over all trials, of each output's largest value
};

// Traces the model on the first of `trials`, which has one sample. Writes the program where it agrees with the model
// within 1e-5 on all trials; those with more samples decide whether it takes any number of samples. The file is written
// whole or not at all; its extra file headroom.json describes inputs and outputs. Afterwards the model's parameters
// have no gradients. REQUIRES a target(): without headroom.predict/1 outputs may depend on the value to predict.
// Error(bad_input) where the model cannot be traced or the trace disagrees; Error(cannot_write). [control]
WrittenScript write_torchscript(Inference& inference, const TrainedModel& trained,
                                const std::vector<ScriptTrial>& trials, const std::filesystem::path& file);

}  // namespace headroom
