// Which outputs of a model the host measures against each other, and what it calls the results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/output_moments.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

inline constexpr size_t host_metric_count = 4;  // mse, mae, rmse, r2: of a pair without classes

// Indices are of the model's outputs.
struct OutputPair {
  std::string model;  // its id
  size_t prediction = 0, target = 0;
  std::optional<size_t> mask;
  std::string name, target_name;  // of prediction and target
  // What the host measures: mse, mae, rmse, r2, or of class scores accuracy, macro_f1, in this order; without a name
  // where the model declares a metric of that name, which wins.
  std::vector<MetricInfo> metrics;
  std::optional<ClassInfo> classes = {};  // where the prediction holds class scores
};

// Predictions and targets in order; one mask for all pairs or one a pair, else Error(plugin). With several pairs the
// metrics' names end in the prediction's: "r2_pose". Pairs that leave nothing to measure are left out; class scores
// always leave the confusion matrix. [any]
std::vector<OutputPair> pair_outputs(const std::string& model_id, std::span<const OutputInfo> outputs,
                                     std::span<const MetricInfo> declared);

// Classes that the model does not name get the names of the source's field; those beyond what it names, their numbers.
// Error(bad_input) where it names more than the model has. [control]
void name_classes(std::vector<OutputPair>& pairs, const std::string& model_id, const Source& source);

std::vector<MetricInfo> host_metrics(std::span<const OutputPair> pairs);

// Error(plugin) when their shapes do not suit.
PairTensors tensors_of(const OutputPair& pair, std::span<const at::Tensor> outputs);

}  // namespace headroom
