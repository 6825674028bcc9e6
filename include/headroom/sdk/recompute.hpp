// Recomputation (activation checkpointing; Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). A part
// of a network does not keep its intermediate results for backward; backward computes them again when it needs them.
// LibTorch has no torch.utils.checkpoint. Needs LibTorch.
//
//   // In the model class; the kind that saves most per second first:
//   static constexpr auto recompute_kinds = recomputes("attention", "mlp");
//   ...
//   x = checkpoint(call, "mlp", [this](const Call& call, TensorSpan inputs, TensorSpan params) {
//         return dropout(call, "mlp"_site, at::linear(inputs[0], params[0], params[1]), 0.1);
//       }, {x}, {weight, bias});
//
// The function must compute from its arguments only: every tensor that gets a gradient is an input or one of `params`,
// and is used through the spans that the function gets. It runs a second time, on the same thread, after step() has
// returned, so what it captures must live as long as the model. Draws from `call` are the same both times; draws from
// LibTorch's own generator are not. Autocast is restored. First order only: no gradient of a gradient. Gradients are
// the same as without recomputation, up to the order in which those of one tensor are added.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "headroom/sdk/autocast.hpp"
#include "headroom/sdk/call.hpp"
#include "headroom/sdk/graph_leaves.hpp"

namespace headroom::sdk {

using TensorSpan = std::span<const at::Tensor>;

// The names of the kinds of calls that a model can recompute, for its static member `recompute_kinds`.
template <class... Names>
constexpr std::array<const char*, sizeof...(Names) + 1> recomputes(Names... names) {
  static_assert(sizeof...(Names) <= 64);
  return {names..., nullptr};
}

namespace detail {

using Recomputable = std::function<at::Tensor(const Call& call, TensorSpan inputs, TensorSpan params)>;

struct RecomputedCall : torch::CustomClassHolder {
  RecomputedCall(const Call& given, std::string_view name, Recomputable body, size_t inputs,
                 std::vector<bool> defined_ones)
      : call(given),
        kind(name),
        function(std::move(body)),
        input_count(inputs),
        is_defined(std::move(defined_ones)),
        autocast(Autocast::now(given.device())) {}

  // Takes the defined tensors only.
  at::Tensor run(TensorSpan defined) const {
    std::vector<at::Tensor> all(is_defined.size());
    for (size_t i = 0, next = 0; i < all.size(); ++i) {
      if (is_defined[i]) all[i] = defined[next++];
    }
    const TensorSpan tensors(all);
    return function(*call, tensors.first(input_count), tensors.subspan(input_count));
  }

  KeptCall call;
  std::string kind;
  Recomputable function;
  size_t input_count;
  std::vector<bool> is_defined;  // of inputs and params: autograd takes no undefined tensor, such as a missing bias
  Autocast autocast;             // of forward
};

// Without this check, a tensor with a gradient that is not among the arguments would silently lose it.
inline void require_all_handed_over(const std::string& kind, const at::Tensor& output, TensorSpan handed_over) {
  for (const at::Tensor& leaf : graph_leaves(output)) {
    if (std::ranges::any_of(handed_over, [&](const at::Tensor& tensor) { return tensor.is_same(leaf); })) continue;
    throw Error(HR_INTERNAL, "checkpoint() of the kind '" + kind + "' uses a tensor of shape " +
                                 c10::str(leaf.sizes()) +
                                 " that takes a gradient and is neither among its inputs nor its params");
  }
}

class Recomputation : public torch::autograd::Function<Recomputation> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const c10::intrusive_ptr<RecomputedCall>& call,
                            at::TensorList tensors) {
    context->saved_data["call"] = at::IValue::make_capsule(call);
    context->save_for_backward(tensors.vec());
    return call->run({tensors.data(), tensors.size()});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto call = c10::static_intrusive_pointer_cast<RecomputedCall>(context->saved_data["call"].toCapsule());
    std::vector<at::Tensor> leaves, wanted;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      leaves.push_back(saved.detach().requires_grad_(saved.requires_grad()));
      if (saved.requires_grad()) wanted.push_back(leaves.back());
    }
    torch::autograd::variable_list found = gradients_of(*call, leaves, wanted, gradients.front());
    torch::autograd::variable_list result(1 + leaves.size());  // none for `call`
    for (size_t i = 0, next = 0; i < leaves.size(); ++i) {
      if (leaves[i].requires_grad()) result[1 + i] = std::move(found[next++]);
    }
    return result;
  }

 private:
  static torch::autograd::variable_list gradients_of(const RecomputedCall& call, TensorSpan leaves,
                                                     const std::vector<at::Tensor>& wanted,
                                                     const at::Tensor& gradient) {
    const at::AutoGradMode with_graph(true);
    at::Tensor output;
    {
      const AutocastScope as_in_forward(call.autocast);
      output = call.run(leaves);
    }
    if (!output.requires_grad()) return torch::autograd::variable_list(wanted.size());
    require_all_handed_over(call.kind, output, leaves);
    return torch::autograd::grad({output}, wanted, {gradient}, /*retain_graph=*/false, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  }
};

}  // namespace detail

// Returns function(call, inputs, params); any of the tensors may be undefined. In training, if memory.recompute asks
// for `kind`, only `inputs` and `params` are kept for backward. Backward then throws Error(HR_INTERNAL) if the function
// used a tensor that is not among them.
inline at::Tensor checkpoint(const Call& call, std::string_view kind, detail::Recomputable function,
                             std::vector<at::Tensor> inputs, std::vector<at::Tensor> params) {
  if (!call.recomputes(kind) || !at::GradMode::is_enabled()) return function(call, inputs, params);
  const size_t count = inputs.size();
  std::vector<at::Tensor> tensors = std::move(inputs);
  tensors.insert(tensors.end(), params.begin(), params.end());
  std::vector<bool> is_defined;
  for (const at::Tensor& tensor : tensors) is_defined.push_back(tensor.defined());
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  return detail::Recomputation::apply(
      c10::make_intrusive<detail::RecomputedCall>(call, kind, std::move(function), count, std::move(is_defined)),
      at::TensorList(tensors));
}

}  // namespace headroom::sdk
