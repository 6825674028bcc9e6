// Which outputs of a model the host compares with which, and the names of the results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/output_moments.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

inline constexpr size_t host_metric_count = 4;  // mse, mae, rmse, r2: of a pair without classes

// Indices count the model's outputs.
struct OutputPair {
  std::string model;  // its id
  size_t prediction = 0, target = 0;
  std::optional<size_t> mask;
  std::string name, target_name;  // of prediction and target
  // The host's metrics: mse, mae, rmse, r2 in this order, or accuracy, macro_f1 for class scores. The name is empty
  // where the model declares a metric of that name; the model's wins.
  std::vector<MetricInfo> metrics;
  std::optional<ClassInfo> classes = {};  // where the prediction holds class scores
};

// Pairs predictions with targets in order. There is one mask for all pairs or one for each, else Error(plugin). With
// several pairs the metrics' names end in the prediction's: "r2_pose". Pairs without anything to measure are left out;
// class scores always have a confusion matrix. [any]
std::vector<OutputPair> pair_outputs(const std::string& model_id, std::span<const OutputInfo> outputs,
                                     std::span<const MetricInfo> declared);

// The index of the field that holds the classes; nullopt: the source has no such field.
std::optional<uint32_t> field_of_classes(const Source& source, const ClassInfo& classes);

// Names the classes that the model does not name: with the names of the source's field, or with their numbers where
// that has too few. Error(bad_input) where the source names more classes than the model has. [control]
void name_classes(std::vector<OutputPair>& pairs, const std::string& model_id, const Source& source);

std::vector<MetricInfo> host_metrics(std::span<const OutputPair> pairs);

// The tensors of a pair. Error(plugin) when their shapes do not match.
PairTensors tensors_of(const OutputPair& pair, std::span<const at::Tensor> outputs);

}  // namespace headroom
