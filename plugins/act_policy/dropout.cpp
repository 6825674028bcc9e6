#include "dropout.hpp"

namespace headroom {
namespace {

// What was dropped is zero, as is what the ReLU cut off: neither has a gradient.
struct ReluDropout : torch::autograd::Function<ReluDropout> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x, const at::Tensor& keep,
                            double scale) {
    x.relu_().mul_(keep).mul_(scale);
    context->mark_dirty({x});
    context->save_for_backward({x});
    context->saved_data["scale"] = scale;
    return x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor scaled = gradients[0] * context->saved_data["scale"].toDouble();
    return {at::threshold_backward(scaled, context->get_saved_variables()[0], 0), {}, {}};
  }
};

}  // namespace

at::Tensor Dropout::after_relu_(at::Tensor x) const {
  if (!active()) return x.relu_();
  const auto samples = static_cast<int64_t>(call_->count());
  const at::Tensor keep = sdk::detail::keep_mask(*call_, site_, {samples, x.size(0) / samples, x.size(1)}, p_);
  return ReluDropout::apply(x, keep.view(x.sizes()), 1.0 / (1.0 - p_));
}

}  // namespace headroom
