// `headroom export --format onnx|pt2`: a TorchScript program that the trainer writes, made into what only PyTorch's
// Python package writes.
#pragma once

#include "cli/trainer_words.hpp"

namespace headroom {

// Prints what was written. Returns the trainer's exit code where it made no program. Error(bad_input) where python3 or
// a package is not there, or the format has no form of what the model computes.
int export_through_python(const ExportWords& words, const CommandLine& line);

}  // namespace headroom
