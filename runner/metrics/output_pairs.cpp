#include "metrics/output_pairs.hpp"

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

std::vector<MetricInfo> all_metrics_for(const OutputInfo& prediction, const std::string& ending) {
  if (prediction.classes) {
    return {MetricInfo{.name = "accuracy" + ending, .unit = "", .better = HR_HIGHER},
            MetricInfo{.name = "macro_f1" + ending, .unit = "", .better = HR_HIGHER}};
  }
  const std::string& unit = prediction.unit;
  return {MetricInfo{.name = "mse" + ending, .unit = squared(unit)}, MetricInfo{.name = "mae" + ending, .unit = unit},
          MetricInfo{.name = "rmse" + ending, .unit = unit},
          MetricInfo{.name = "r2" + ending, .unit = "", .better = HR_HIGHER}};
}

std::vector<MetricInfo> metrics_for(const OutputInfo& prediction, const std::string& ending,
                                    std::span<const MetricInfo> declared) {
  std::vector<MetricInfo> metrics = all_metrics_for(prediction, ending);
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

// Scores have one axis more than the classes that they are judged by.
void require_class_shapes(const OutputPair& pair, const at::Tensor& scores, const at::Tensor& target) {
  std::vector<int64_t> wanted = target.sizes().vec();
  wanted.push_back(pair.classes->count);
  if (scores.sizes().vec() != wanted || !scores.is_floating_point()) {
    throw Error(Exit::plugin, pair.model,
                "the output '" + pair.name + "' is " + at::toString(scores.scalar_type()) + " " + shape_of(scores) +
                    " and its target '" + pair.target_name + "' has shape " + shape_of(target) + ": scores of " +
                    std::to_string(pair.classes->count) +
                    " classes are floating-point numbers of the target's shape and a last axis of the classes");
  }
  if (!at::isIntegralType(target.scalar_type(), /*includeBool=*/true)) {
    throw Error(Exit::plugin, pair.model,
                "the target '" + pair.target_name + "' of the class scores '" + pair.name + "' is " +
                    at::toString(target.scalar_type()) + ": classes are integers");
  }
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
                    metrics_for(prediction, count > 1 ? "_" + prediction.name : "", declared),
                    prediction.classes};
    if (!masks.empty()) pair.mask = masks[masks.size() == 1 ? 0 : i];
    // Where the model measures all four itself, its outputs need not be asked for.
    if (pair.classes || !host_metrics(std::span(&pair, 1)).empty()) pairs.push_back(std::move(pair));
  }
  return pairs;
}

void name_classes(std::vector<OutputPair>& pairs, const std::string& model_id, const Source& source) {
  for (OutputPair& pair : pairs) {
    if (!pair.classes || !pair.classes->names.empty()) continue;
    const auto field = std::ranges::find(source.fields(), pair.classes->field, &Field::name);
    if (field == source.fields().end()) continue;
    std::vector<std::string> names = source.class_names(static_cast<uint32_t>(field - source.fields().begin()));
    const auto count = static_cast<size_t>(pair.classes->count);
    if (names.size() > count) {
      throw Error(Exit::bad_input, model_id,
                  "the data source names " + std::to_string(names.size()) + " classes of the field '" + field->name +
                      "', the model has " + std::to_string(count) + ": give the model as many");
    }
    while (!names.empty() && names.size() < count) names.push_back(std::to_string(names.size()));
    pair.classes->names = std::move(names);
  }
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
  if (pair.classes) {
    require_class_shapes(pair, prediction, target);
  } else if (prediction.sizes() != target.sizes()) {
    throw Error(Exit::plugin, pair.model,
                "the output '" + pair.name + "' has shape " + shape_of(prediction) + " and its target '" +
                    pair.target_name + "' " + shape_of(target) +
                    ": they must be equal; declare a target of another kind with the role aux");
  }
  // Scores have no element of their own for a mask: it is of what they are judged by.
  const at::Tensor& masked = pair.classes ? target : prediction;
  if (mask.defined() && !broadcasts(mask, masked)) {
    throw Error(Exit::plugin, pair.model,
                "the mask of the output '" + pair.name + "' has shape " + shape_of(mask) + ", the " +
                    (pair.classes ? "target " : "output ") + shape_of(masked) +
                    ": a mask has the output's leading axes, or 1 in their place");
  }
  return tensors;
}

}  // namespace headroom
