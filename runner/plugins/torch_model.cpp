#include "plugins/torch_model.hpp"

#include <algorithm>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <new>
#include <utility>

#include "error.hpp"
#include "headroom/sdk/torch_tag.hpp"
#include "memory/budget.hpp"
#include "plugins/call.hpp"
#include "plugins/model_contract.hpp"

namespace headroom {

namespace {

// check(), but out of memory becomes LibTorch's own exception, which train/retry.hpp handles.
void check_memory_or(hr_status status, const hr_error& error, const std::string& id, const std::string& doing) {
  TORCH_CHECK_WITH(OutOfMemoryError, status != HR_OUT_OF_MEMORY, '[', id, "] ", message_of(error));
  check(status, error, id, doing);
}

// The same for a call with a batch. What LibTorch says of a wrong shape needs the shapes that came.
void check_call(hr_status status, const hr_error& error, const std::string& id, const std::string& doing,
                const CallContract& contract) {
  check_memory_or(status, error, id, status == HR_INTERNAL ? doing + " with " + contract.batch_text() : doing);
}

// A plugin that catches the exception of a refused tensor and goes on gives what another limit would not give. That is
// no result: it ran out of memory, and says so as the exception would have.
class Refusals {
 public:
  void require_none(const std::string& id, const char* doing) const {
    TORCH_CHECK_WITH(OutOfMemoryError, tensor_refusals() == before_, '[', id, "] ", doing,
                     " was refused memory and went on without it");
  }

 private:
  int64_t before_ = tensor_refusals();
};

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
      classes_(library.classes()),
      backward_(library.backward()),
      fields_(std::move(fields)) {
  if (api_ == nullptr) throw Error(Exit::bad_input, id_, "this plugin is not a model: it offers no " HR_MODEL_TORCH);
  // The table of a source has no model's side.
  if (predictor_ != nullptr && predictor_->predict == nullptr) predictor_ = nullptr;
  capabilities_ = api_->capabilities;
  recompute_kinds_ = library.recompute_kinds();
  const NativeOptions native(to_option_table(api_->options, id_), options);
  std::vector<hr_field> native_fields;
  // Each hr_field borrows its channels from one of these until create() returns.
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
    outputs_ = description.outputs(classes_);
    metrics_ = description.metrics();
    if (const hr_capabilities* own = library.capabilities())
      capabilities_ = call(id_, "of_model", own->of_model, handle_);
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
  const CallContract contract(id_, fields_, batch);
  StepResult result;
  if (want_outputs) result.outputs.resize(outputs_.size());
  std::vector<hr_tensor> outputs;
  // Undefined tensors that the plugin assigns; the vector must not move from here on.
  for (const at::Tensor& output : result.outputs) outputs.push_back(handle_of(output));
  hr_error error = no_error();
  const sdk::AutocastScope scope(autocast_of_call());
  const Refusals refusals;
  const hr_status status =
      call(id_, "step", api_->step, handle_, &native, contract.handles(), handle_of(result.loss_sum),
           handle_of(result.weight), want_outputs ? outputs.data() : nullptr, handle_of(result.metrics), &error);
  check_call(status, error, id_, "a step", contract);
  refusals.require_none(id_, "a step");
  contract.require_unchanged();
  contract.require_result(result, outputs_, metrics_.size());
  widen(result.outputs);
  return result;
}

void Model::backward(const at::Tensor& loss, at::TensorList only) {
  const Refusals refusals;
  if (backward_ != nullptr) {
    hr_error error = no_error();
    const hr_status status = call(id_, "backward", backward_->backward, handle_, handle_of(loss), &error);
    check_memory_or(status, error, id_, "backward through the model's step");
    refusals.require_none(id_, "backward through the model's step");
    return;
  }
  try {
    if (only.empty()) {
      loss.backward();
    } else {
      loss.backward({}, /*retain_graph=*/std::nullopt, /*create_graph=*/false, only);
    }
    refusals.require_none(id_, "backward through the model's step");
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& problem) {
    throw Error(Exit::plugin, id_,
                std::string("backward through the model's step failed: ") + problem.what_without_backtrace());
  }
}

std::vector<at::Tensor> Model::predict(int64_t step, std::span<const uint64_t> sample_keys,
                                       std::span<const at::Tensor> batch) {
  if (batch.size() != fields_.size()) throw Error(Exit::bug, id_, "a prediction needs one tensor a field");
  const hr_call native = call_of(HR_EVAL, step, sample_keys);
  const CallContract contract(id_, fields_, batch);
  // All outputs are wanted; those that need a target stay undefined.
  std::vector<at::Tensor> outputs(outputs_.size());
  std::vector<hr_tensor> handles;
  for (const at::Tensor& output : outputs) handles.push_back(handle_of(output));
  hr_error error = no_error();
  const sdk::AutocastScope scope(autocast_of_call());
  const Refusals refusals;
  const hr_status status =
      call(id_, "predict", predictor_->predict, handle_, &native, contract.handles(), handles.data(), &error);
  check_call(status, error, id_, "a prediction", contract);
  refusals.require_none(id_, "a prediction");
  contract.require_unchanged();
  contract.require_prediction(outputs, outputs_, sample_keys.size());
  widen(outputs);
  return outputs;
}

void Model::balance(size_t i, std::span<const uint64_t> counts) {
  hr_error error = no_error();
  check_memory_or(call(id_, "balance", classes_->balance, handle_, static_cast<uint32_t>(i), counts.data(),
                       static_cast<uint64_t>(counts.size()), &error),
                  error, id_, "balancing the classes of '" + outputs_.at(i).name + "'");
}

void Model::recompute(std::span<const std::string> kinds) {
  recomputed_ = 0;
  for (const std::string& kind : kinds) {
    const auto found = std::ranges::find(recompute_kinds_, kind);
    if (found == recompute_kinds_.end()) throw Error(Exit::bug, id_, "it cannot recompute '" + kind + "'");
    // abi.h: the bits are in the order of the plugin's own list.
    recomputed_ |= uint64_t{1} << (found - recompute_kinds_.begin());
  }
}

int64_t Model::trim(int level) {
  if (gc_ == nullptr || gc_->trim_model == nullptr) return 0;
  return static_cast<int64_t>(call(id_, "trim_model", gc_->trim_model, handle_, level));
}

std::string Model::save_state() const {
  if (state_ == nullptr) return {};
  struct Written {
    std::string bytes;
    bool fits = true;
  } written;
  // It captures nothing, so that it becomes a C function pointer; `context` is `written`. Nothing may be thrown through
  // the plugin, so what does not fit is told once it has returned.
  const auto write = [](void* context, const void* data, uint64_t count) noexcept {
    auto& [bytes, fits] = *static_cast<Written*>(context);
    try {
      if (fits) bytes.append(static_cast<const char*>(data), count);
    } catch (...) {
      fits = false;
    }
  };
  hr_error error = no_error();
  check(call(id_, "save", state_->save, handle_, +write, &written, &error), error, id_, "saving the model's state");
  if (!written.fits) throw std::bad_alloc();
  return std::move(written.bytes);
}

void Model::load_state(std::string_view bytes) {
  if (state_ == nullptr) return;
  hr_error error = no_error();
  check(call(id_, "load", state_->load, handle_, bytes.data(), bytes.size(), &error), error, id_,
        "loading the model's state");
}

}  // namespace headroom
