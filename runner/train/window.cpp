#include "train/window.hpp"

#include <string_view>

#include "error.hpp"
#include "train/pieces.hpp"

namespace headroom {

namespace {

ForwardSnapshot make_snapshot(Model& model, at::Device device) {
  const OwnerScope scope(Owner::gradients);
  return {model, device};
}

std::vector<Parameter*> make_trainable(Model& model) {
  std::vector<Parameter*> trainable;
  for (Parameter& parameter : model.parameters()) {
    if (parameter.kind != HR_PARAMETER) continue;
    // What is never trained has no graph and no gradient.
    parameter.tensor->requires_grad_(parameter.trains());
    if (parameter.trains()) trainable.push_back(&parameter);
  }
  return trainable;
}

void zero(at::TensorList gradients) {
  if (gradients.empty()) return;
  const PhaseScope zeroing(StepPhase::optimizer);
  at::_foreach_zero_(gradients);
}

}  // namespace

Window::Window(Model& model, at::Device device, at::ScalarType dtype, Retry& retry, OutputMetrics outputs,
               RankGroup* group)
    : model_(model),
      device_(device),
      dtype_(dtype),
      retry_(retry),
      trainable_(make_trainable(model)),
      reduction_(group != nullptr ? std::make_unique<GradientReduction>(*group, trainable_) : nullptr),
      gradients_(group == nullptr ? std::make_unique<WindowGradients>(trainable_) : nullptr),
      check_(model.id(), trainable_),
      sums_(model.metrics().size(), device, std::move(outputs)),
      snapshot_(make_snapshot(model, device)) {}

void Window::thaw(int64_t step) {
  for (Parameter* parameter : trainable_) {
    const bool trained = parameter->frozen_until_step <= step;
    // Until then it is in no graph and costs no backward pass.
    if (parameter->tensor->requires_grad() != trained) parameter->tensor->requires_grad_(trained);
  }
}

void Window::begin(double loss_scale) {
  loss_scale_ = loss_scale;
  snapshot_.discard();  // of the last window
  at::NoGradGuard no_grad;
  if (reduction_ != nullptr) {
    zero(reduction_->open_gradients());
  } else {
    gradients_->begin();
  }
  // What was sent is not computed again, and has been reached.
  if (reduction_ == nullptr || !reduction_->has_sent()) check_.begin_window();
  sums_.zero();
  // Last: where memory runs out before it, there is nothing to restore.
  snapshot_.take();
}

bool Window::add(const Batch& batch, int64_t step, bool want_outputs, bool is_last) {
  const auto total = static_cast<int64_t>(batch.count());
  if (in_micro_batches(batch, retry_, [&](int64_t first, int64_t count) {
        return add_micro_batch(batch, first, count, step, want_outputs, is_last && first + count == total);
      })) {
    return true;
  }
  restore();
  return false;
}

// Out of memory in forward has changed no gradient: where forward changes nothing else either, this micro-batch alone
// is repeated (again). In backward some gradients hold this micro-batch and some do not: the window is lost.
PassEnd Window::add_micro_batch(const Batch& batch, int64_t first, int64_t count, int64_t step, bool want_outputs,
                                bool is_last) {
  const char* doing = "forward";
  Shortage shortage;
  const bool fits = attempt_within_memory(shortage, doing, count, [&] {
    const MicroBatchTensors tensors(batch, first, count, device_, dtype_);
    const StepResult result = run_forward(tensors, step, want_outputs);
    // From here on gradients change, so a shortage loses the window.
    doing = "backward";
    run_backward(result, is_last);
    const PhaseScope measuring(StepPhase::metrics);
    sums_.add(result);
  });
  if (fits) return PassEnd::done;
  const bool added = std::string_view(doing) == "backward";
  retry_.after(shortage);
  return added || snapshot_.is_needed() ? PassEnd::lost : PassEnd::again;
}

StepResult Window::run_forward(const MicroBatchTensors& tensors, int64_t step, bool want_outputs) {
  const PhaseScope forward(StepPhase::forward);
  check_.before_step();
  StepResult result = model_.step(HR_TRAIN, step, tensors.keys, tensors.fields, want_outputs);
  check_.after_step(result);
  return result;
}

void Window::run_backward(const StepResult& result, bool is_last) {
  const PhaseScope backward(StepPhase::backward);
  // Whether a plugin's own pass comes back to a gradient is not known: its gradients are sent when it is over.
  const GradientReduction::LastPass last(is_last && !model_.runs_backward() ? reduction_.get() : nullptr);
  // A micro-batch may hold nothing to learn from; GradientCheck tells where none ever does.
  if (!result.loss_sum.requires_grad()) return;
  add_gradients(loss_scale_ == 1.0 ? result.loss_sum : result.loss_sum * loss_scale_);
  check_.after_backward();
  if (gradients_ != nullptr) gradients_->take();
}

std::vector<at::Tensor> Window::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const Parameter* parameter : trainable_) {
    if (parameter->tensor->grad().defined()) gradients.push_back(parameter->tensor->grad());
  }
  return gradients;
}

void Window::note_reached(std::span<const std::string> of_all_shares) {
  unreached_.clear();
  for (size_t i = 0; i < trainable_.size(); ++i) {
    if (std::ranges::none_of(of_all_shares, [i](const std::string& marks) { return marks[i] == '1'; }))
      unreached_.push_back(trainable_[i]);
  }
}

// To all gradients; of a share that is computed again to those that were not sent.
void Window::add_gradients(const at::Tensor& loss) {
  if (reduction_ == nullptr || !reduction_->has_sent()) return model_.backward(loss);
  const std::vector<at::Tensor> open = reduction_->open_parameters();
  if (!open.empty()) model_.backward(loss, open);
}

double Window::divide() {
  const double weight = sums_.weight();
  if (weight < 0) {
    throw Error(Exit::plugin, model_.id(),
                "the model's weights add up to " + std::to_string(weight) +
                    ": a weight is the number of elements that loss_sum is summed over");
  }
  if (weight > 0 && counted_here_) check_.end_window();
  norm_ = divide_gradients(gradients(), weight > 0 ? weight * loss_scale_ : 1.0);
  return weight;
}

}  // namespace headroom
