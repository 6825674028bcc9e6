// What has changed since a checkpoint was written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/checkpoint.hpp"
#include "train/setup.hpp"

namespace headroom {

// Sentences such as "train.optimizer.lr was 0.01, is 0.1".
struct Differences {
  std::vector<std::string> mathematics;  // the weights from here on differ
  std::vector<std::string> length;       // the run ends at another step; the steps until then are the same
  std::vector<std::string> rounding;     // threads, processor, micro-batch, LibTorch, device: equal up to rounding
  std::vector<std::string> code;         // plugins that were rebuilt; what changed in their code is unknown
};

// What every checkpoint stores for differences_from().
nlohmann::json surroundings(const Setup& setup);

// Compares key by key. An older checkpoint that lacks the keys is compared by the combined values that it has.
// Error(bad_input) when the checkpoint is damaged.
Differences differences_from(const LoadedCheckpoint& checkpoint, const Setup& setup);

// Throws Error(bad_input) that names every difference in the mathematics; returns where there is none.
void require_same_mathematics(const Differences& differences, const std::string& run);

}  // namespace headroom
