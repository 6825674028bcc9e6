#include "train/gradient_check.hpp"

#include <algorithm>
#include <unordered_set>

#include "error.hpp"
#include "headroom/sdk/graph_leaves.hpp"

namespace headroom {

namespace {

// LibTorch counts the writes in place to a tensor; backward adds to a gradient in place where there is one.
int64_t version_of(const Parameter& parameter) {
  const at::Tensor& gradient = parameter.tensor->grad();
  return gradient.defined() ? static_cast<int64_t>(gradient._version()) : -1;
}

}  // namespace

UnregisteredTensors::UnregisteredTensors(std::span<Parameter* const> trainable) : trainable_(trainable) {}

void UnregisteredTensors::look(const at::Tensor& loss_sum) {
  leaves_.clear();
  std::unordered_set<const void*> known;
  for (const Parameter* parameter : trainable_) known.insert(parameter->tensor->unsafeGetTensorImpl());
  for (const at::Tensor& leaf : sdk::graph_leaves(loss_sum)) {
    if (known.contains(leaf.unsafeGetTensorImpl())) continue;
    leaves_.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(leaf.getIntrusivePtr()), c10::str(leaf.sizes())});
  }
}

std::string UnregisteredTensors::shape_of_survivor() const {
  for (const Leaf& leaf : leaves_) {
    if (!leaf.tensor.expired()) return leaf.shape;
  }
  return "";
}

GradientCheck::GradientCheck(std::string model_id, std::span<Parameter* const> trainable)
    : model_id_(std::move(model_id)), unregistered_(trainable) {
  for (const Parameter* parameter : trainable) entries_.push_back({.parameter = parameter});
}

void GradientCheck::before_step() {
  for (Entry& entry : entries_) {
    entry.version = version_of(*entry.parameter);
    // Window::thaw() turns requires_grad on once the parameter is unfrozen.
    entry.asked = entry.asked || entry.parameter->tensor->requires_grad();
  }
}

void GradientCheck::after_step(const StepResult& result) {
  for (const Entry& entry : entries_) {
    if (version_of(*entry.parameter) != entry.version) {
      throw Error(Exit::plugin, model_id_,
                  "the model's step changes the gradient of '" + entry.parameter->name +
                      "': leave out backward() and zero_grad(), the host calls them");
    }
  }
  had_graph_ = had_graph_ || result.loss_sum.requires_grad();
  if (windows_ < patience) unregistered_.look(result.loss_sum);
}

void GradientCheck::after_backward() {
  for (Entry& entry : entries_) {
    entry.reached = entry.reached || version_of(*entry.parameter) != entry.version;
    entry.had_gradient = entry.had_gradient || entry.reached;
  }
}

void GradientCheck::begin_window() {
  for (Entry& entry : entries_) entry.reached = false;
}

std::string GradientCheck::reached() const {
  std::string marks;
  for (const Entry& entry : entries_) marks += entry.reached ? '1' : '0';
  return marks;
}

void GradientCheck::end_window() {
  if (windows_ == patience) return;
  require_registered();
  // Windows in which all is frozen prove nothing and do not count.
  if (std::ranges::none_of(entries_, [](const Entry& entry) { return entry.parameter->tensor->requires_grad(); }))
    return;
  if (++windows_ < patience) return;
  if (const std::string why = why_untrained(); !why.empty()) throw Error(Exit::plugin, model_id_, why);
}

std::string GradientCheck::why_untrained() const {
  const auto asked = [](const Entry& entry) { return entry.asked; };
  const auto had = [](const Entry& entry) { return entry.had_gradient; };
  if (std::ranges::none_of(entries_, asked) || std::ranges::any_of(entries_, had)) return "";
  if (!had_graph_) {
    return "the model's step returns a loss_sum without a graph, so nothing would be trained: look for detach(), "
           "item(), a tensor made of numbers, NoGradGuard or InferenceMode on its way";
  }
  return "the loss depends on none of the model's parameters, so nothing would be trained: a step has to use the "
         "tensors that were registered, not copies or new ones in their place";
}

void GradientCheck::require_registered() const {
  const std::string shape = unregistered_.shape_of_survivor();
  if (shape.empty()) return;
  throw Error(Exit::plugin, model_id_,
              "the loss depends on a tensor of shape " + shape +
                  " that is no parameter of the model, so it would never be trained: register it in the constructor "
                  "(register_module, register_parameter) and do not replace it later; what is to stay as it is takes "
                  "requires_grad_(false)");
}

std::vector<std::string> GradientCheck::without_gradient() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.asked && !entry.had_gradient) names.push_back(entry.parameter->name);
  }
  return names;
}

}  // namespace headroom
