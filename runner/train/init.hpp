// [init]: the weights that a run starts from, in place of those that its model draws from the seed.
#pragma once

#include <string>

#include "config/experiment.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

// [init]: copies tensors whose (mapped) names and shapes match; returns one line for the log, "" without init.from.
// Error(bad_input) when nothing matched or a tensor of the model is neither found nor ignored.
std::string initialise_from(const InitSection& init, Model& model);

// A hash of the weights that [init] starts a run from: the tensors of its file, wherever the file lies, with map and
// ignore. "" without init.from.
std::string start_id(const InitSection& init);

}  // namespace headroom
