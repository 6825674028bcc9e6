// What is not as it was when a checkpoint was written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/checkpoint.hpp"
#include "train/setup.hpp"

namespace headroom {

// Sentences such as "train.optimizer.lr was 0.01, is 0.1".
struct Differences {
  std::vector<std::string> mathematics;  // another training from here on
  std::vector<std::string> length;       // when it ends; the steps taken are those of either
  std::vector<std::string> rounding;     // threads, processor, micro-batch, LibTorch, device: equal up to rounding
  std::vector<std::string> code;         // plugins built anew: nobody knows what of their code differs
};

// Part of every checkpoint, for differences_from().
nlohmann::json surroundings(const Setup& setup);

// By key; where an older checkpoint does not hold the keys, by what it holds of them together. Error(bad_input) when
// the checkpoint is damaged.
Differences differences_from(const LoadedCheckpoint& checkpoint, const Setup& setup);

// Error(bad_input) that names every difference in the mathematics, if there is any.
void require_same_mathematics(const Differences& differences, const std::string& run);

}  // namespace headroom
