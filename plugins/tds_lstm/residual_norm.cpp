#include "residual_norm.hpp"

#include <ATen/Parallel.h>

#include "headroom/sdk/autocast.hpp"
#include "norm_kernel.hpp"

namespace headroom {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [batch, time, features] whose samples are contiguous and may lie apart, as the last steps of longer ones do.
at::Tensor with_whole_samples(const at::Tensor& given) {
  return given.stride(2) == 1 && given.stride(1) == given.size(2) ? given : given.contiguous();
}

struct ResidualNorm : torch::autograd::Function<ResidualNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const std::optional<at::Tensor>& given_residual, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon) {
    const at::Tensor y = given.contiguous();
    const bool adds = given_residual.has_value();
    TORCH_CHECK(y.size(2) == weight.size(0) && (!adds || given_residual->sizes() == y.sizes()),
                "residual_norm: shapes");
    const at::Tensor residual = adds ? with_whole_samples(*given_residual) : at::Tensor();
    const at::Tensor sum = adds ? at::empty_like(y) : y;
    at::Tensor to = at::empty_like(y), moments = at::empty({y.size(0), y.size(1), 2}, y.options());
    const NormShape shape{y.size(1), y.size(2)};
    const int64_t of_sample = shape.rows * shape.features;
    float* const to_sum = adds ? sum.mutable_data_ptr<float>() : nullptr;
    float* const to_moments = moments.mutable_data_ptr<float>();
    float* const to_result = to.mutable_data_ptr<float>();
    at::parallel_for(0, y.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        normalise_rows(
            shape,
            {y.const_data_ptr<float>() + b * of_sample,
             adds ? residual.const_data_ptr<float>() + b * residual.stride(0) : nullptr, weight.const_data_ptr<float>(),
             bias.const_data_ptr<float>(), adds ? to_sum + b * of_sample : nullptr, to_result + b * of_sample,
             reinterpret_cast<NormMoments*>(to_moments) + b * shape.rows, static_cast<float>(epsilon)});
      }
    });
    context->save_for_backward({sum, weight, moments});
    context->saved_data["adds"] = adds;
    return to;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &sum = saved[0], &weight = saved[1], &moments = saved[2], above = gradients[0].contiguous();
    const NormShape shape{sum.size(1), sum.size(2)};
    const int64_t batch = sum.size(0), of_sample = shape.rows * shape.features;
    at::Tensor to_sum = at::empty_like(sum);
    // Of each sample by itself, so that their sums do not depend on the number of threads.
    at::Tensor of_norm = at::zeros({batch, 2, shape.features}, sum.options());
    float *const to_rows = to_sum.mutable_data_ptr<float>(), *const to_norm = of_norm.mutable_data_ptr<float>();
    at::parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        float* const to_weight = to_norm + b * 2 * shape.features;
        add_norm_gradient(shape,
                          {sum.const_data_ptr<float>() + b * of_sample, weight.const_data_ptr<float>(),
                           above.const_data_ptr<float>() + b * of_sample,
                           reinterpret_cast<const NormMoments*>(moments.const_data_ptr<float>()) + b * shape.rows,
                           to_rows + b * of_sample, to_weight, to_weight + shape.features});
      }
    });
    const at::Tensor total = of_norm.sum(0);
    return {to_sum, context->saved_data["adds"].toBool() ? to_sum : at::Tensor(), total[0], total[1], at::Tensor()};
  }
};

bool is_plain(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.scalar_type() == at::kFloat; }

}  // namespace

at::Tensor residual_norm(const at::Tensor& y, const std::optional<at::Tensor>& residual,
                         torch::nn::LayerNormImpl& norm) {
  if (is_plain(y) && (!residual || is_plain(*residual)) && is_plain(norm.weight) && has_norm_kernel(y.size(2)) &&
      !sdk::Autocast::now(y.device()).enabled)
    return ResidualNorm::apply(y, residual, norm.weight, norm.bias, norm.options.eps());
  return norm.forward(residual ? y + *residual : y);
}

}  // namespace headroom
