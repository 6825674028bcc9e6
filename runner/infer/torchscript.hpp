// A trained model as a TorchScript program, made by tracing: measured values in, predictions out as measured. The
// program is kept only where it does what the model does.
#pragma once

#include <filesystem>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "infer/inference.hpp"

namespace headroom {

// Samples to try the program on, as Inference::run() takes them. All have the shapes of Inference::inputs().
struct ScriptTrial {
  std::string what;  // "made-up samples"
  std::vector<at::Tensor> inputs;
};

struct WrittenScript {
  std::vector<std::string> arguments;  // of forward(), in order: the names of the inputs as Python can have them
  std::vector<std::string> outputs;    // what it returns: one tensor, or a tuple of them
  bool any_count = false;              // false: it takes one sample at a time, and refuses more
  double largest_difference = 0.0;     // over all trials, of each output's largest value
};

// Traces the model on the first of `trials`, which has one sample, and writes the program where it agrees within 1e-5
// with the model on all of them; those of more samples say whether it takes any number. The file appears whole or not
// at all; its extra file headroom.json says what it takes and gives. REQUIRES a target(): without headroom.predict/1
// outputs may need what is to be predicted. From then on the model's parameters have no gradients.
// Error(bad_input) where the model cannot be traced or the trace disagrees; Error(cannot_write). [control]
WrittenScript write_torchscript(Inference& inference, const TrainedModel& trained,
                                const std::vector<ScriptTrial>& trials, const std::filesystem::path& file);

}  // namespace headroom
