#include "train/window.hpp"

#include <ATen/DLConvertor.h>
#include <algorithm>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace headroom {

MicroBatchTensors::MicroBatchTensors(const Batch& batch, int64_t first, int64_t count, at::Device device,
                                     at::ScalarType dtype)
    : keys(std::span(batch.key).subspan(static_cast<size_t>(first), static_cast<size_t>(count))) {
  const OwnerScope scope(Owner::batches);
  fields.reserve(batch.fields.size());
  for (const DLTensor& field : batch.fields) {
    if (field.data == nullptr) {
      fields.emplace_back();
      continue;
    }
    const std::vector<int64_t> shape(field.shape, field.shape + field.ndim);
    const auto type = at::toScalarType(field.dtype);
    auto hold = batch.hold;
    const at::Tensor whole = torch::from_blob(
        field.data, shape, [hold](void*) {}, at::TensorOptions(type));
    const at::Tensor part = whole.narrow(0, first, count);
    fields.push_back(part.to(device, at::isFloatingType(type) ? dtype : type, /*non_blocking=*/device.is_cuda()));
  }
  if (!device.is_cuda()) return;
  copied_.emplace(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

MicroBatchTensors::~MicroBatchTensors() {
  if (!copied_) return;
  try {
    copied_->synchronize();
  } catch (const c10::Error&) {  // the device has failed: the next call of it says so
  }
}

namespace {

Traces make_traces(Model& model, at::Device device) {
  const OwnerScope scope(Owner::gradients);
  return {model, device};
}

}  // namespace

Window::Window(Model& model, at::Device device, at::ScalarType dtype, Retry& retry, OutputMetrics outputs)
    : model_(model),
      device_(device),
      dtype_(dtype),
      retry_(retry),
      sums_(model.metrics().size(), device, std::move(outputs)),
      traces_(make_traces(model, device)) {
  const OwnerScope scope(Owner::gradients);
  for (Parameter& parameter : model.parameters()) {
    if (parameter.kind != HR_PARAMETER) continue;
    parameter.tensor->requires_grad_(parameter.trains());
    if (!parameter.trains()) continue;
    parameter.tensor->mutable_grad() = at::zeros_like(*parameter.tensor);
    trainable_.push_back(&parameter);
    gradients_.push_back(parameter.tensor->grad());
  }
}

void Window::thaw(int64_t step) {
  for (Parameter* parameter : trainable_) {
    const bool trained = parameter->frozen_until_step <= step;
    if (parameter->tensor->requires_grad() != trained) parameter->tensor->requires_grad_(trained);
  }
}

void Window::begin(double loss_scale) {
  loss_scale_ = loss_scale;
  traces_.forget();  // of the last window
  at::NoGradGuard no_grad;
  if (!gradients_.empty()) at::_foreach_zero_(gradients_);
  sums_.zero();
  traces_.remember();
}

bool Window::add(const Batch& batch, int64_t step, bool want_outputs) {
  const auto total = static_cast<int64_t>(batch.count());
  for (int64_t first = 0; first < total;) {
    const int64_t count = std::min(retry_.size(), total - first);
    switch (add_micro_batch(batch, first, count, step, want_outputs)) {
      case Outcome::done:
        first += count;
        break;
      case Outcome::again:
        break;
      case Outcome::lost:
        put_back();
        return false;
    }
  }
  return true;
}

Window::Outcome Window::add_micro_batch(const Batch& batch, int64_t first, int64_t count, int64_t step,
                                        bool want_outputs) {
  const char* doing = "forward";
  Shortage shortage;
  const bool fits = attempt_within_memory(shortage, doing, count, [&] {
    const MicroBatchTensors tensors(batch, first, count, device_, dtype_);
    const StepResult result = model_.step(HR_TRAIN, step, tensors.keys, tensors.fields, want_outputs);
    doing = "backward";
    if (result.loss_sum.requires_grad()) {
      (loss_scale_ == 1.0 ? result.loss_sum : result.loss_sum * loss_scale_).backward();
    }
    sums_.add(result);
  });
  if (fits) return Outcome::done;
  const bool added = std::string_view(doing) == "backward";
  retry_.after(shortage);
  return added || traces_.possible() ? Outcome::lost : Outcome::again;
}

double Window::divide() {
  const double weight = sums_.weight();
  if (weight > 0 && !gradients_.empty()) at::_foreach_div_(gradients_, weight * loss_scale_);
  return weight;
}

}  // namespace headroom
