#include "plugins/torch_model.hpp"

#include <algorithm>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cmath>
#include <cstring>
#include <set>

#include "error.hpp"
#include "headroom/sdk/torch_tag.hpp"
#include "plugins/call.hpp"

namespace headroom {

namespace {

constexpr uint32_t kMost = 1u << 20;  // parameters, outputs or metrics; more is a bug of the plugin

hr_error no_error() { return {sizeof(hr_error), HR_OK, {}}; }

hr_tensor handle_of(const at::Tensor& tensor) { return reinterpret_cast<hr_tensor>(const_cast<at::Tensor*>(&tensor)); }

std::string text(const char* value) { return value != nullptr ? value : ""; }

// Reads the description of a new model and refuses what is inconsistent.
class ModelDescription {
 public:
  ModelDescription(const std::string& id, const hr_model_torch& api, hr_model* handle)
      : id_(id), api_(api), handle_(handle) {}

  std::vector<Parameter> parameters() const {
    std::set<std::string> names;
    std::vector<Parameter> result;
    const uint32_t count = counted("parameters", call(id_, "param_count", api_.param_count, handle_));
    for (uint32_t i = 0; i < count; ++i) {
      hr_error error = no_error();
      hr_param native{};
      native.struct_size = sizeof native;
      native.lr_scale = native.weight_decay_scale = 1.0;
      check(call(id_, "param", api_.param, handle_, i, &native, &error), error, id_,
            "describing parameter " + std::to_string(i));
      Parameter parameter{text(native.name),
                          text(native.group),
                          native.kind,
                          (native.flags & HR_PARAM_INERT) != 0,
                          native.lr_scale,
                          native.weight_decay_scale,
                          native.frozen_until_step,
                          native.lr,
                          reinterpret_cast<at::Tensor*>(native.tensor)};
      require_name("parameter", parameter.name, names);
      require_sound(parameter);
      result.push_back(std::move(parameter));
    }
    return result;
  }

  std::vector<OutputInfo> outputs() const {
    std::set<std::string> names;
    std::vector<OutputInfo> result;
    const uint32_t count = counted("outputs", call(id_, "output_count", api_.output_count, handle_));
    for (uint32_t i = 0; i < count; ++i) {
      hr_error error = no_error();
      hr_output native{sizeof(hr_output), HR_AUX, nullptr, nullptr};
      check(call(id_, "output", api_.output, handle_, i, &native, &error), error, id_,
            "describing output " + std::to_string(i));
      result.push_back({text(native.name), text(native.unit), native.role});
      require_name("output", result.back().name, names);
    }
    return result;
  }

  std::vector<MetricInfo> metrics() const {
    std::set<std::string> names;
    std::vector<MetricInfo> result;
    const uint32_t count = counted("metrics", call(id_, "metric_count", api_.metric_count, handle_));
    for (uint32_t i = 0; i < count; ++i) {
      hr_error error = no_error();
      hr_metric native{sizeof(hr_metric), HR_MEAN, nullptr, nullptr, HR_LOWER, 0};
      check(call(id_, "metric", api_.metric, handle_, i, &native, &error), error, id_,
            "describing metric " + std::to_string(i));
      result.push_back({text(native.name), text(native.unit), native.reduction, native.better});
      require_name("metric", result.back().name, names);
      if (native.reduction != HR_MEAN && native.reduction != HR_ROOT_MEAN)
        refuse("metric '" + result.back().name + "' has an unknown reduction");
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Error(Exit::plugin, id_, "the model describes itself inconsistently: " + sentence);
  }
  uint32_t counted(const std::string& what, uint32_t count) const {
    if (count > kMost) refuse("it declares " + std::to_string(count) + " " + what);
    return count;
  }
  void require_name(const std::string& what, const std::string& name, std::set<std::string>& seen) const {
    if (name.empty()) refuse("its " + what + " " + std::to_string(seen.size()) + " has no name");
    if (!seen.insert(name).second) refuse("it declares " + what + " '" + name + "' twice");
  }
  void require_sound(const Parameter& parameter) const {
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

  std::string id_;
  const hr_model_torch& api_;
  hr_model* handle_;
};

// The inputs of a step and LibTorch's version counters of them: a plugin that writes to an input would spoil retries
// and other micro-batches.
class Inputs {
 public:
  explicit Inputs(std::span<const at::Tensor> batch) : batch_(batch) {
    for (const at::Tensor& tensor : batch) {
      handles_.push_back(tensor.defined() ? handle_of(tensor) : nullptr);
      versions_.push_back(version(tensor));
    }
  }
  const hr_tensor* handles() const { return handles_.data(); }

  // The first input that was written to; -1: none.
  int64_t written() const {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (version(batch_[i]) != versions_[i]) return static_cast<int64_t>(i);
    }
    return -1;
  }

 private:
  static uint64_t version(const at::Tensor& tensor) {
    // Inference tensors have no version counter.
    return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
  }

  std::span<const at::Tensor> batch_;
  std::vector<hr_tensor> handles_;
  std::vector<uint64_t> versions_;
};

// check(), but out of memory becomes LibTorch's own exception, which train/retry.hpp handles.
void check_memory_or(hr_status status, const hr_error& error, const std::string& id, const std::string& doing) {
  const std::string reason(error.message, strnlen(error.message, sizeof error.message));
  TORCH_CHECK_WITH(OutOfMemoryError, status != HR_OUT_OF_MEMORY, '[', id, "] ", reason);
  check(status, error, id, doing);
}

[[noreturn]] void refuse_result(const std::string& id, const std::string& sentence) {
  throw Error(Exit::plugin, id, "the model's step breaks the contract: " + sentence);
}

void require_zero_dim(const std::string& id, const char* name, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse_result(id, std::string(name) + " was not assigned");
  if (tensor.dim() != 0) {
    refuse_result(id, std::string(name) + " has " + std::to_string(tensor.dim()) +
                          " axes instead of none: return a sum, not one value a sample");
  }
}

// Outputs that autocast left in bfloat16 or float16.
void widen(std::vector<at::Tensor>& outputs) {
  for (at::Tensor& output : outputs) {
    if (output.defined() && at::isReducedFloatingType(output.scalar_type())) output = output.to(at::kFloat);
  }
}

}  // namespace

const char* host_torch_tag() { return HEADROOM_TORCH_TAG; }

Model::Model(const Library& library, const OptionValues& options, std::vector<Field> fields, uint64_t seed,
             Session& session)
    : id_(library.id()),
      api_(library.model_torch()),
      state_(library.state()),
      gc_(library.gc()),
      predictor_(library.predict()),
      fields_(std::move(fields)) {
  if (api_ == nullptr) throw Error(Exit::bad_input, id_, "this plugin is not a model: it offers no " HR_MODEL_TORCH);
  if (predictor_ != nullptr && predictor_->predict == nullptr) predictor_ = nullptr;
  capabilities_ = api_->capabilities;
  recompute_kinds_ = library.recompute_kinds();
  const NativeOptions native(to_option_table(api_->options, id_), options);
  std::vector<hr_field> native_fields;
  std::vector<std::vector<hr_channel>> native_channels(fields_.size());
  for (std::size_t i = 0; i < fields_.size(); ++i) native_fields.push_back(fields_[i].native(native_channels[i]));
  hr_error error = no_error();
  check_memory_or(call(id_, "create", api_->create, session.host_for(id_), native.values(), native_fields.data(),
                       static_cast<uint32_t>(native_fields.size()), seed, &handle_, &error),
                  error, id_, "building the model");
  if (handle_ == nullptr) throw Error(Exit::plugin, id_, "building the model gave neither a model nor an error");
  try {
    const ModelDescription description(id_, *api_, handle_);
    parameters_ = description.parameters();
    outputs_ = description.outputs();
    metrics_ = description.metrics();
  } catch (...) {  // the destructor does not run for a constructor that throws
    call_quietly(id_, "destroy", api_->destroy, handle_);
    throw;
  }
}

Model::~Model() { call_quietly(id_, "destroy", api_->destroy, handle_); }

void Model::to(at::Device device, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : parameters_) {
    at::Tensor& tensor = *parameter.tensor;
    // set_data keeps the at::Tensor object, which the plugin's modules and the optimizer refer to.
    tensor.set_data(tensor.detach().to(device, tensor.is_floating_point() ? dtype : tensor.scalar_type()));
  }
}

at::Device Model::device() const {
  return parameters_.empty() ? at::Device(at::kCPU) : parameters_.front().tensor->device();
}

sdk::Autocast Model::autocast_of_call() const {
  return {device().type(), autocast_.has_value(), autocast_.value_or(at::kBFloat16)};
}

hr_call Model::call_of(hr_mode mode, int64_t step, std::span<const uint64_t> sample_keys) const {
  const at::Device device = this->device();
  hr_call native{sizeof(hr_call), mode, step, sample_keys.size(), sample_keys.data(), kDLCPU, 0, nullptr, recomputed_};
  if (device.is_cuda()) {
    native.device_type = kDLCUDA;
    native.device_id = device.index();
    // Through the virtual guard, so that this file needs no CUDA headers.
    native.stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
  }
  return native;
}

StepResult Model::step(hr_mode mode, int64_t step, std::span<const uint64_t> sample_keys,
                       std::span<const at::Tensor> batch, bool want_outputs) {
  if (batch.size() != fields_.size()) throw Error(Exit::bug, id_, "a step needs one tensor a field");
  const hr_call native = call_of(mode, step, sample_keys);
  const Inputs inputs(batch);
  StepResult result;
  if (want_outputs) result.outputs.resize(outputs_.size());
  std::vector<hr_tensor> outputs;
  // Undefined tensors that the plugin assigns; the vector must not move from here on.
  for (const at::Tensor& output : result.outputs) outputs.push_back(handle_of(output));
  hr_error error = no_error();
  const sdk::AutocastScope scope(autocast_of_call());
  const hr_status status =
      call(id_, "step", api_->step, handle_, &native, inputs.handles(), handle_of(result.loss_sum),
           handle_of(result.weight), want_outputs ? outputs.data() : nullptr, handle_of(result.metrics), &error);
  check_memory_or(status, error, id_, "a step");
  require_read_only(inputs.written());
  require_contract(result);
  widen(result.outputs);
  return result;
}

std::vector<at::Tensor> Model::predict(int64_t step, std::span<const uint64_t> sample_keys,
                                       std::span<const at::Tensor> batch) {
  if (batch.size() != fields_.size()) throw Error(Exit::bug, id_, "a prediction needs one tensor a field");
  const hr_call native = call_of(HR_EVAL, step, sample_keys);
  const Inputs inputs(batch);
  std::vector<at::Tensor> outputs(outputs_.size());
  std::vector<hr_tensor> handles;
  for (const at::Tensor& output : outputs) handles.push_back(handle_of(output));
  hr_error error = no_error();
  const sdk::AutocastScope scope(autocast_of_call());
  const hr_status status =
      call(id_, "predict", predictor_->predict, handle_, &native, inputs.handles(), handles.data(), &error);
  check_memory_or(status, error, id_, "a prediction");
  require_read_only(inputs.written());
  const auto found = std::ranges::find(outputs_, HR_PREDICTION, &OutputInfo::role);
  if (found == outputs_.end())
    refuse_result(id_, "it offers " HR_PREDICT " and has no output with the role prediction");
  const at::Tensor& prediction = outputs[static_cast<std::size_t>(found - outputs_.begin())];
  if (!prediction.defined() || (prediction.dim() != 3 && prediction.dim() != 5) || prediction.size(1) < 1 ||
      prediction.size(0) != static_cast<int64_t>(sample_keys.size())) {
    refuse_result(id_, "the output '" + found->name +
                           "' of a prediction is not [samples, steps, channels], nor pictures [samples, steps, "
                           "colours, height, width]");
  }
  widen(outputs);
  return outputs;
}

void Model::require_read_only(int64_t written_input) const {
  if (written_input < 0) return;
  refuse_result(id_, "it wrote to its input '" + fields_[static_cast<std::size_t>(written_input)].name +
                         "': inputs are read-only");
}

void Model::require_contract(const StepResult& result) const {
  require_zero_dim(id_, "loss_sum", result.loss_sum);
  require_zero_dim(id_, "weight", result.weight);
  if (!result.loss_sum.is_floating_point()) refuse_result(id_, "loss_sum is not a floating-point number");
  if (at::isReducedFloatingType(result.loss_sum.scalar_type())) {
    refuse_result(id_, "loss_sum is a " + std::string(at::toString(result.loss_sum.scalar_type())) +
                           ", too narrow for a sum: take what it is made of to float32 before adding it up");
  }
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    if (!result.outputs[i].defined()) refuse_result(id_, "output '" + outputs_[i].name + "' was not assigned");
    if (result.outputs[i].requires_grad()) refuse_result(id_, "output '" + outputs_[i].name + "' is not detached");
  }
  const auto rows = static_cast<int64_t>(metrics_.size());
  if (rows == 0) return;
  if (!result.metrics.defined() || result.metrics.sizes() != at::IntArrayRef({rows, 2}) ||
      result.metrics.scalar_type() != at::kDouble) {
    refuse_result(id_, "metrics is not a float64 tensor of shape [" + std::to_string(rows) + ", 2]");
  }
}

void Model::recompute(std::span<const std::string> kinds) {
  recomputed_ = 0;
  for (const std::string& kind : kinds) {
    const auto found = std::ranges::find(recompute_kinds_, kind);
    if (found == recompute_kinds_.end()) throw Error(Exit::bug, id_, "it cannot recompute '" + kind + "'");
    recomputed_ |= uint64_t{1} << (found - recompute_kinds_.begin());
  }
}

int64_t Model::trim(int level) {
  if (gc_ == nullptr || gc_->trim_model == nullptr) return 0;
  return static_cast<int64_t>(call(id_, "trim_model", gc_->trim_model, handle_, level));
}

std::string Model::save_state() const {
  if (state_ == nullptr) return {};
  std::string bytes;
  const auto write = [](void* context, const void* data, uint64_t count) {
    static_cast<std::string*>(context)->append(static_cast<const char*>(data), count);
  };
  hr_error error = no_error();
  check(call(id_, "save", state_->save, handle_, +write, &bytes, &error), error, id_, "saving the model's state");
  return bytes;
}

void Model::load_state(std::string_view bytes) {
  if (state_ == nullptr) return;
  hr_error error = no_error();
  check(call(id_, "load", state_->load, handle_, bytes.data(), bytes.size(), &error), error, id_,
        "loading the model's state");
}

}  // namespace headroom
