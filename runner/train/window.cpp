#include "train/window.hpp"

#include <string_view>

namespace headroom {

namespace {

ForwardSnapshot make_snapshot(Model& model, at::Device device) {
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
      snapshot_(make_snapshot(model, device)) {
  const OwnerScope scope(Owner::gradients);
  for (Parameter& parameter : model.parameters()) {
    // Gradients exist from the start, at one place: what a step needs is held before the first one is taken.
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
  snapshot_.discard();  // of the last window
  at::NoGradGuard no_grad;
  if (!gradients_.empty()) at::_foreach_zero_(gradients_);
  sums_.zero();
  snapshot_.take();
}

bool Window::add(const Batch& batch, int64_t step, bool want_outputs) {
  if (in_micro_batches(batch, retry_, [&](int64_t first, int64_t count) {
        return add_micro_batch(batch, first, count, step, want_outputs);
      })) {
    return true;
  }
  restore();
  return false;
}

// Out of memory in forward has changed no gradient: where forward changes nothing else either, this micro-batch alone
// is repeated (again). In backward some gradients hold this micro-batch and some do not: the window is lost.
PassEnd Window::add_micro_batch(const Batch& batch, int64_t first, int64_t count, int64_t step, bool want_outputs) {
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
  if (fits) return PassEnd::done;
  const bool added = std::string_view(doing) == "backward";
  retry_.after(shortage);
  return added || snapshot_.is_needed() ? PassEnd::lost : PassEnd::again;
}

double Window::divide() {
  const double weight = sums_.weight();
  if (weight > 0 && !gradients_.empty()) at::_foreach_div_(gradients_, weight * loss_scale_);
  return weight;
}

}  // namespace headroom
