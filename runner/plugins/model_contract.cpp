#include "plugins/model_contract.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "error.hpp"
#include "plugins/call.hpp"

namespace headroom {

namespace {

constexpr uint32_t kMost = 1u << 20;  // parameters, outputs or metrics; more is a bug of the plugin

std::string text(const char* value) { return value != nullptr ? value : ""; }

// Inference tensors have no version counter.
uint64_t version(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
}

}  // namespace

hr_tensor handle_of(const at::Tensor& tensor) { return reinterpret_cast<hr_tensor>(const_cast<at::Tensor*>(&tensor)); }

template <class Info, class Native, class Handle>
std::vector<Info> ModelDescription::each(const std::string& what, const std::string& function,
                                         uint32_t (*count_of)(const hr_model*),
                                         hr_status (*describe)(Handle, uint32_t, Native*, hr_error*),
                                         const std::type_identity_t<Native>& blank,
                                         std::type_identity_t<Info (*)(const Native&)> info_of) const {
  const uint32_t count = call(id_, function + "_count", count_of, handle_);
  if (count > kMost) refuse("it declares " + std::to_string(count) + " " + what + "s");
  std::set<std::string> names;
  std::vector<Info> result;
  for (uint32_t i = 0; i < count; ++i) {
    hr_error error = no_error();
    Native native = blank;
    check(call(id_, function, describe, handle_, i, &native, &error), error, id_,
          "describing " + what + " " + std::to_string(i));
    result.push_back(info_of(native));
    const std::string& name = result.back().name;
    if (name.empty()) refuse("its " + what + " " + std::to_string(i) + " has no name");
    if (!names.insert(name).second) refuse("it declares " + what + " '" + name + "' twice");
  }
  return result;
}

std::vector<Parameter> ModelDescription::parameters() const {
  hr_param blank{};
  blank.struct_size = sizeof blank;
  // What holds where the plugin leaves them alone.
  blank.lr_scale = blank.weight_decay_scale = 1.0;
  auto result = each<Parameter>("parameter", "param", api_.param_count, api_.param, blank, [](const hr_param& native) {
    return Parameter{text(native.name),
                     text(native.group),
                     native.kind,
                     (native.flags & HR_PARAM_INERT) != 0,
                     native.lr_scale,
                     native.weight_decay_scale,
                     native.frozen_until_step,
                     native.lr,
                     reinterpret_cast<at::Tensor*>(native.tensor)};
  });
  for (const Parameter& parameter : result) require_sound(parameter);
  require_different_tensors(result);
  return result;
}

std::vector<OutputInfo> ModelDescription::outputs(const hr_classes* classes) const {
  // Neither a prediction nor a target where the plugin leaves the role alone.
  const hr_output blank{sizeof(hr_output), HR_AUX, nullptr, nullptr};
  auto result =
      each<OutputInfo>("output", "output", api_.output_count, api_.output, blank, [](const hr_output& native) {
        return OutputInfo{text(native.name), text(native.unit), native.role};
      });
  for (uint32_t i = 0; classes != nullptr && i < result.size(); ++i)
    result[i].classes = classes_of(*classes, i, result[i]);
  return result;
}

std::optional<ClassInfo> ModelDescription::classes_of(const hr_classes& classes, uint32_t i,
                                                      const OutputInfo& output) const {
  hr_error error = no_error();
  hr_class_scores native{sizeof(hr_class_scores), 0, 0, nullptr, nullptr};
  const hr_status status = call(id_, "scores", classes.scores, handle_, i, &native, &error);
  if (status == HR_NOT_FOUND) return std::nullopt;
  check(status, error, id_, "describing the classes of output '" + output.name + "'");
  if (output.role != HR_PREDICTION)
    refuse("output '" + output.name + "' holds class scores and has another role than prediction");
  if (native.count < 2 || native.count > HR_MOST_CLASSES) {
    refuse("output '" + output.name + "' has " + std::to_string(native.count) + " classes; 2 to " +
           std::to_string(HR_MOST_CLASSES) + " are allowed, and with more an output is declared without classes");
  }
  ClassInfo info{static_cast<int64_t>(native.count), text(native.field), {}, (native.flags & HR_CLASSES_COUNTED) != 0};
  if (info.counted && (info.field.empty() || classes.balance == nullptr))
    refuse("the classes of output '" + output.name + "' are to be counted, and it names no field or has no balance()");
  for (uint64_t c = 0; native.names != nullptr && c < native.count; ++c) {
    if (native.names[c] == nullptr) refuse("class " + std::to_string(c) + " of '" + output.name + "' has no name");
    info.names.emplace_back(native.names[c]);
  }
  return info;
}

std::vector<MetricInfo> ModelDescription::metrics() const {
  const hr_metric blank{sizeof(hr_metric), HR_MEAN, nullptr, nullptr, HR_LOWER, 0};
  auto result =
      each<MetricInfo>("metric", "metric", api_.metric_count, api_.metric, blank, [](const hr_metric& native) {
        return MetricInfo{text(native.name), text(native.unit), native.reduction, native.better};
      });
  for (const MetricInfo& metric : result) {
    if (metric.reduction != HR_MEAN && metric.reduction != HR_ROOT_MEAN)
      refuse("metric '" + metric.name + "' has an unknown reduction");
  }
  return result;
}

void ModelDescription::refuse(const std::string& sentence) const {
  throw Error(Exit::plugin, id_, "the model describes itself inconsistently: " + sentence);
}

void ModelDescription::require_sound(const Parameter& parameter) const {
  const std::string name = "parameter '" + parameter.name + "'";
  if (parameter.tensor == nullptr || !parameter.tensor->defined()) refuse(name + " has no tensor");
  if (!parameter.tensor->device().is_cpu())
    refuse(name + " was built on " + parameter.tensor->device().str() + " instead of the CPU");
  if (parameter.kind < HR_PARAMETER || parameter.kind > HR_DERIVED)
    refuse(name + " has the unknown kind " + std::to_string(parameter.kind));
  for (const double scale : {parameter.lr_scale, parameter.weight_decay_scale, parameter.lr}) {
    if (!std::isfinite(scale) || scale < 0.0) refuse(name + " has the scale " + std::to_string(scale));
  }
}

// Under two names it would be stepped twice.
void ModelDescription::require_different_tensors(const std::vector<Parameter>& parameters) const {
  std::map<const void*, const Parameter*> seen;
  for (const Parameter& parameter : parameters) {
    // An at::Tensor is only a handle: two of them are one tensor where they share its implementation.
    const auto [found, is_new] = seen.emplace(parameter.tensor->unsafeGetTensorImpl(), &parameter);
    // The optimizer does not touch buffers, so they may share one.
    if (!is_new && (parameter.kind == HR_PARAMETER || found->second->kind == HR_PARAMETER))
      refuse("'" + found->second->name + "' and '" + parameter.name + "' are one tensor: declare it under one name");
  }
}

CallContract::CallContract(const std::string& id, std::span<const Field> fields, std::span<const at::Tensor> batch)
    : id_(id), fields_(fields), batch_(batch), records_(at::GradMode::is_enabled()) {
  for (const at::Tensor& tensor : batch) {
    // abi.h: NULL where a field is absent.
    handles_.push_back(tensor.defined() ? handle_of(tensor) : nullptr);
    versions_.push_back(version(tensor));
  }
}

std::string CallContract::batch_text() const {
  std::ostringstream text;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (!batch_[i].defined()) continue;
    text << (text.tellp() > 0 ? ", " : "") << fields_[i].name << ' ' << batch_[i].scalar_type() << ' '
         << batch_[i].sizes();
  }
  return text.str();
}

void CallContract::refuse(const std::string& sentence) const {
  throw Error(Exit::plugin, id_, "the model's step breaks the contract: " + sentence);
}

void CallContract::require_unchanged() const {
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (version(batch_[i]) != versions_[i])
      refuse("it wrote to its input '" + fields_[i].name + "': inputs are read-only");
  }
  if (at::GradMode::is_enabled() != records_) {
    refuse(std::string("it leaves autograd switched ") + (records_ ? "off" : "on") +
           ": use torch::NoGradGuard or torch::AutoGradMode, which end with their scope");
  }
}

void CallContract::require_zero_dim(const char* name, const at::Tensor& tensor) const {
  if (!tensor.defined()) refuse(std::string(name) + " was not assigned");
  if (tensor.dim() != 0) {
    refuse(std::string(name) + " has " + std::to_string(tensor.dim()) +
           " axes instead of none: return a sum, not one value a sample");
  }
}

void CallContract::require_result(const StepResult& result, std::span<const OutputInfo> outputs,
                                  size_t metric_count) const {
  require_zero_dim("loss_sum", result.loss_sum);
  require_zero_dim("weight", result.weight);
  if (!result.loss_sum.is_floating_point()) refuse("loss_sum is not a floating-point number");
  if (at::isReducedFloatingType(result.loss_sum.scalar_type())) {
    refuse("loss_sum is a " + std::string(at::toString(result.loss_sum.scalar_type())) +
           ", too narrow for a sum: take what it is made of to float32 before adding it up");
  }
  // On a device, looking at it would wait for all that was asked of the device.
  if (result.weight.is_cpu()) {
    const double weight = result.weight.item<double>();
    if (weight < 0) {
      refuse("weight is " + std::to_string(weight) +
             ": it is the number of elements that loss_sum is summed over, 0 if none counts");
    }
  }
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    if (!result.outputs[i].defined()) refuse("output '" + outputs[i].name + "' was not assigned");
    // An output that carries its graph would keep the activations of the step alive.
    if (result.outputs[i].requires_grad()) refuse("output '" + outputs[i].name + "' is not detached");
  }
  const auto rows = static_cast<int64_t>(metric_count);
  if (rows == 0) return;
  if (!result.metrics.defined() || result.metrics.sizes() != at::IntArrayRef({rows, 2}) ||
      result.metrics.scalar_type() != at::kDouble) {
    refuse("metrics is not a float64 tensor of shape [" + std::to_string(rows) + ", 2]");
  }
}

void CallContract::require_prediction(std::span<const at::Tensor> outputs, std::span<const OutputInfo> infos,
                                      size_t samples) const {
  // predict.h: always the first one with this role.
  const auto found = std::ranges::find(infos, HR_PREDICTION, &OutputInfo::role);
  if (found == infos.end()) refuse("it offers " HR_PREDICT " and has no output with the role prediction");
  const at::Tensor& prediction = outputs[static_cast<std::size_t>(found - infos.begin())];
  if (!prediction.defined() || (prediction.dim() != 3 && prediction.dim() != 5) || prediction.size(1) < 1 ||
      prediction.size(0) != static_cast<int64_t>(samples)) {
    refuse("the output '" + found->name +
           "' of a prediction is not [samples, steps, channels], nor pictures [samples, steps, colours, height, "
           "width]");
  }
}

}  // namespace headroom
