#include "train/gradient_check.hpp"

#include <algorithm>

#include "error.hpp"

namespace headroom {

namespace {

// LibTorch counts the writes in place to a tensor; backward adds to a gradient in place where there is one.
int64_t version_of(const Parameter& parameter) { return parameter.tensor->grad()._version(); }

}  // namespace

GradientCheck::GradientCheck(std::string model_id, std::span<Parameter* const> trainable)
    : model_id_(std::move(model_id)) {
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
}

void GradientCheck::after_backward() {
  for (Entry& entry : entries_) {
    entry.had_gradient = entry.had_gradient || version_of(*entry.parameter) != entry.version;
  }
}

void GradientCheck::end_window() {
  constexpr int patience = 3;
  const auto is_trained = [](const Entry& entry) { return entry.parameter->tensor->requires_grad(); };
  const auto had = [](const Entry& entry) { return entry.had_gradient; };
  // Windows in which all is frozen prove nothing and do not count.
  if (windows_ == patience || !std::ranges::any_of(entries_, is_trained)) return;
  if (++windows_ < patience || std::ranges::any_of(entries_, had)) return;
  if (!had_graph_) {
    throw Error(Exit::plugin, model_id_,
                "the model's step returns a loss_sum without a graph, so nothing would be trained: look for detach(), "
                "item(), a tensor made of numbers, NoGradGuard or InferenceMode on its way");
  }
  throw Error(Exit::plugin, model_id_,
              "the loss depends on none of the model's parameters, so nothing would be trained: a step has to use the "
              "tensors that were registered, not copies or new ones in their place");
}

std::vector<std::string> GradientCheck::without_gradient() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.asked && !entry.had_gradient) names.push_back(entry.parameter->name);
  }
  return names;
}

}  // namespace headroom
