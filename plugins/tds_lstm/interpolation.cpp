#include "interpolation.hpp"

#include <ATen/Parallel.h>

#include "row_kernels.hpp"

namespace headroom {
namespace {

at::Tensor empty_rows(int64_t batch, int64_t steps, int64_t features, bool by_step, const at::TensorOptions& like) {
  if (by_step) return at::empty({steps, batch, features}, like).transpose(0, 1);
  return at::empty({batch, steps, features}, like);
}

// The features of a row next to each other, whatever the order of batch and time.
at::Tensor with_whole_rows(const at::Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

struct OverTime : torch::autograd::Function<OverTime> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& given, int64_t steps,
                            bool aligned, bool by_step) {
    const at::Tensor x = with_whole_rows(given);
    const std::vector<Between> positions = positions_between(x.size(1), steps, aligned);
    at::Tensor result = empty_rows(x.size(0), steps, x.size(2), by_step, x.options());
    const Interpolation shape{&positions, x.size(1), x.size(2), x.stride(1), result.stride(1)};
    const float* const from = x.const_data_ptr<float>();
    float* const to = result.mutable_data_ptr<float>();
    at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) interpolate_rows(shape, from + b * x.stride(0), to + b * result.stride(0));
    });
    context->saved_data["time"] = x.size(1);
    context->saved_data["aligned"] = aligned;
    context->saved_data["by_step"] = x.stride(0) < x.stride(1);
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor above = with_whole_rows(gradients[0]);
    const int64_t time = context->saved_data["time"].toInt();
    const std::vector<Between> positions =
        positions_between(time, above.size(1), context->saved_data["aligned"].toBool());
    at::Tensor to_x =
        empty_rows(above.size(0), time, above.size(2), context->saved_data["by_step"].toBool(), above.options());
    to_x.zero_();
    const Interpolation shape{&positions, time, above.size(2), to_x.stride(1), above.stride(1)};
    const float* const from = above.const_data_ptr<float>();
    float* const to = to_x.mutable_data_ptr<float>();
    at::parallel_for(0, above.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        add_interpolation_gradient(shape, from + b * above.stride(0), to + b * to_x.stride(0));
    });
    return {to_x, {}, {}, {}};
  }
};

}  // namespace

at::Tensor interpolate_over_time(const at::Tensor& x, int64_t steps, Corners corners, bool out_by_step) {
  const bool aligned = corners == Corners::aligned;
  if (x.is_cpu() && x.scalar_type() == at::kFloat) return OverTime::apply(x, steps, aligned, out_by_step);
  const at::Tensor result = at::upsample_linear1d(x.transpose(1, 2), {steps}, aligned).transpose(1, 2);
  return out_by_step ? result.transpose(0, 1).contiguous().transpose(0, 1) : result;
}

}  // namespace headroom
