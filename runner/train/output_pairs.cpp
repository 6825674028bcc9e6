#include "train/output_pairs.hpp"

#include <algorithm>

#include "error.hpp"

namespace headroom {

namespace {

std::vector<size_t> with_role(std::span<const OutputInfo> outputs, hr_role role) {
  std::vector<size_t> found;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].role == role) found.push_back(i);
  }
  return found;
}

std::string squared(const std::string& unit) {
  if (unit.empty()) return "";
  // "m" becomes "m^2", "m/s" becomes "(m/s)^2".
  return (unit.find_first_of("/*^ ") == std::string::npos ? unit : "(" + unit + ")") + "^2";
}

std::array<MetricInfo, host_metric_count> metrics_for(const OutputInfo& prediction, const std::string& ending,
                                                      std::span<const MetricInfo> declared) {
  const std::string& unit = prediction.unit;
  std::array<MetricInfo, host_metric_count> metrics{MetricInfo{.name = "mse" + ending, .unit = squared(unit)},
                                                    MetricInfo{.name = "mae" + ending, .unit = unit},
                                                    MetricInfo{.name = "rmse" + ending, .unit = unit},
                                                    MetricInfo{.name = "r2" + ending, .unit = "", .better = HR_HIGHER}};
  for (MetricInfo& metric : metrics) {
    const auto same = [&](const MetricInfo& other) { return other.name == metric.name; };
    // The model's own definition of a metric wins over the host's.
    if (std::any_of(declared.begin(), declared.end(), same)) metric.name.clear();
  }
  return metrics;
}

std::string shape_of(const at::Tensor& tensor) {
  std::string text = "[";
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) text += (axis ? ", " : "") + std::to_string(tensor.size(axis));
  return text + "]";
}

// From the first axis on, unlike LibTorch, which aligns the last ones: a mask may lack trailing axes.
bool broadcasts(const at::Tensor& mask, const at::Tensor& prediction) {
  if (mask.dim() > prediction.dim()) return false;
  for (int64_t axis = 0; axis < mask.dim(); ++axis) {
    if (mask.size(axis) != prediction.size(axis) && mask.size(axis) != 1) return false;
  }
  return true;
}

}  // namespace

std::vector<OutputPair> pair_outputs(const std::string& model_id, std::span<const OutputInfo> outputs,
                                     std::span<const MetricInfo> declared) {
  const auto predictions = with_role(outputs, HR_PREDICTION), targets = with_role(outputs, HR_TARGET),
             masks = with_role(outputs, HR_MASK);
  const size_t count = std::min(predictions.size(), targets.size());
  // Which mask belongs to which pair would be a guess.
  if (count > 0 && masks.size() > 1 && masks.size() != count) {
    throw Error(Exit::plugin, model_id,
                "the model declares " + std::to_string(masks.size()) + " outputs with the role mask for " +
                    std::to_string(count) + " pairs of prediction and target: declare one for all, or one a pair");
  }
  std::vector<OutputPair> pairs;
  for (size_t i = 0; i < count; ++i) {
    const OutputInfo& prediction = outputs[predictions[i]];
    OutputPair pair{model_id,
                    predictions[i],
                    targets[i],
                    {},
                    prediction.name,
                    outputs[targets[i]].name,
                    metrics_for(prediction, count > 1 ? "_" + prediction.name : "", declared)};
    if (!masks.empty()) pair.mask = masks[masks.size() == 1 ? 0 : i];
    // Where the model measures all four itself, its outputs need not be asked for.
    if (!host_metrics(std::span(&pair, 1)).empty()) pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::vector<MetricInfo> host_metrics(std::span<const OutputPair> pairs) {
  std::vector<MetricInfo> named;
  for (const OutputPair& pair : pairs) {
    for (const MetricInfo& metric : pair.metrics) {
      if (!metric.name.empty()) named.push_back(metric);
    }
  }
  return named;
}

PairTensors tensors_of(const OutputPair& pair, std::span<const at::Tensor> outputs) {
  PairTensors tensors{outputs[pair.prediction], outputs[pair.target], pair.mask ? outputs[*pair.mask] : at::Tensor()};
  const auto& [prediction, target, mask] = tensors;
  // Shapes are known only here: a model declares roles alone.
  if (prediction.sizes() != target.sizes()) {
    throw Error(Exit::plugin, pair.model,
                "the output '" + pair.name + "' has shape " + shape_of(prediction) + " and its target '" +
                    pair.target_name + "' " + shape_of(target) +
                    ": they must be equal; declare a target of another kind with the role aux");
  }
  if (mask.defined() && !broadcasts(mask, prediction)) {
    throw Error(Exit::plugin, pair.model,
                "the mask of the output '" + pair.name + "' has shape " + shape_of(mask) + ", the output " +
                    shape_of(prediction) + ": a mask has the output's leading axes, or 1 in their place");
  }
  return tensors;
}

}  // namespace headroom
