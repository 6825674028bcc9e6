#include "tds_convolution.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "headroom/sdk/autocast.hpp"
#include "tds_kernel.hpp"

namespace headroom {
namespace {

TdsShape shape_of(const at::Tensor& x, const at::Tensor& weight) {
  return {weight.size(0), x.size(2) / weight.size(0), weight.size(3)};
}

struct TdsConvolution : torch::autograd::Function<TdsConvolution> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& weight, const at::Tensor& bias) {
    const at::Tensor x = given.contiguous();
    const TdsShape shape = shape_of(x, weight);
    const int64_t time = x.size(1), out = time - shape.kernel + 1, features = shape.features();
    const TdsWeights weights = TdsWeights::forward(shape, weight.contiguous().const_data_ptr<float>(),
                                                   bias.contiguous().const_data_ptr<float>());
    at::Tensor y = at::empty({x.size(0), out, features}, x.options());
    const float* const from = x.const_data_ptr<float>();
    float* const to = y.mutable_data_ptr<float>();
    at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
      at::Tensor scratch = at::empty({tds_scratch_size(shape, time)}, x.options());
      for (int64_t b = begin; b < end; ++b)
        convolve_tds(weights, from + b * time * features, time, 0, scratch.mutable_data_ptr<float>(),
                     to + b * out * features);
    });
    context->save_for_backward({x, weight});
    return y;
  }

  // Samples in as many even parts as there are threads, each with sums of its own for the weights.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], weight = saved[1].contiguous(), to_y = gradients[0].contiguous();
    const TdsShape shape = shape_of(x, weight);
    const TdsWeights weights = TdsWeights::backward(shape, weight.const_data_ptr<float>());
    const int64_t batch = x.size(0), time = x.size(1), out = to_y.size(1), features = shape.features();
    const int64_t parts = std::min<int64_t>(at::get_num_threads(), batch);
    at::Tensor to_x = at::empty_like(x), sums = at::zeros({parts, shape.weights() * shape.width}, x.options());
    at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      at::Tensor memory = at::empty({tds_scratch_size(shape, time)}, x.options());
      float* const scratch = memory.mutable_data_ptr<float>();
      for (int64_t part = first; part < last; ++part) {
        for (int64_t b = part * batch / parts; b < (part + 1) * batch / parts; ++b) {
          const float* const to_sample = to_y.const_data_ptr<float>() + b * out * features;
          convolve_tds(weights, to_sample, out, shape.kernel - 1, scratch,
                       to_x.mutable_data_ptr<float>() + b * time * features);
          add_tds_weight_gradient(shape, x.const_data_ptr<float>() + b * time * features, time, to_sample, scratch,
                                  sums.mutable_data_ptr<float>() + part * sums.size(1));
        }
      }
    });
    const at::Tensor sum = sums.sum(0);
    at::Tensor to_weight = at::empty_like(weight);
    finish_tds_weight_gradient(shape, sum.const_data_ptr<float>(), to_weight.mutable_data_ptr<float>());
    // In two sums: LibTorch takes ten times as long for both axes at once.
    const at::Tensor to_bias = to_y.view({batch * out, features}).sum(0).view({shape.channels, shape.width}).sum(1);
    return {to_x, to_weight, to_bias};
  }
};

}  // namespace

bool has_tds_convolution(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         has_tds_kernel(shape_of(x, weight)) && !sdk::Autocast::now(x.device()).enabled;
}

at::Tensor tds_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return TdsConvolution::apply(x, weight, bias);
}

}  // namespace headroom
