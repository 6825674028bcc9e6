// Which outputs of a model the host measures against each other, and what it calls the results.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"
#include "train/output_moments.hpp"

namespace headroom {

inline constexpr size_t host_metric_count = 4;  // mse, mae, rmse, r2, in this order

// Indices are of the model's outputs.
struct OutputPair {
  std::string model;  // its id
  size_t prediction = 0, target = 0;
  std::optional<size_t> mask;
  std::string name, target_name;  // of prediction and target
  // What the host measures; without a name where the model declares a metric of that name, which wins.
  std::array<MetricInfo, host_metric_count> metrics;
};

// Predictions and targets in order; one mask for all pairs or one a pair, else Error(plugin). With several pairs the
// metrics' names end in the prediction's: "r2_pose". Pairs that leave nothing to measure are left out. [any]
std::vector<OutputPair> pair_outputs(const std::string& model_id, std::span<const OutputInfo> outputs,
                                     std::span<const MetricInfo> declared);

std::vector<MetricInfo> host_metrics(std::span<const OutputPair> pairs);

// Error(plugin) when their shapes do not suit.
PairTensors tensors_of(const OutputPair& pair, std::span<const at::Tensor> outputs);

}  // namespace headroom
