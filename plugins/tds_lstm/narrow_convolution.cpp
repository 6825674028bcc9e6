#include "narrow_convolution.hpp"

#include <algorithm>

#include "headroom/sdk/autocast.hpp"
#include "headroom/sdk/cpu_kernel.hpp"
#include "small_product.hpp"
#include "time_convolution.hpp"

namespace headroom {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Beyond these oneDNN is as fast: of the output's channels, and of the numbers that one step of it reads.
constexpr int64_t most_out = 64, most_window = 1024;
constexpr auto in_order = at::MemoryFormat::ChannelsLast;  // steps behind each other, each with its channels

// Numbers that an output reads, which lie behind each other.
int64_t window_of(const TimeShape& shape) { return shape.kernel * shape.channels; }

at::Tensor room_for(const Matrix& matrix) {
  return at::empty({panel_count(matrix.columns) * panel_elements(matrix.inner)}, at::kFloat);
}

// In panels, all of them.
at::Tensor laid_out(const Matrix& matrix) {
  at::Tensor panels = room_for(matrix);
  lay_out(matrix, 0, panel_count(matrix.columns), panels.mutable_data_ptr<float>());
  return panels;
}

void add_all(const SmallProduct& product) { add_product(product, 0, panel_count(product.columns)); }

// Begins as the bias.
at::Tensor output(const TimeShape& shape, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t batch = x.size(0), steps = shape.outputs(), window = window_of(shape);
  const at::Tensor by_window = weight.permute({2, 1, 0}).contiguous();
  const at::Tensor panels = laid_out({window, shape.out, by_window.const_data_ptr<float>(), shape.out, 1});
  at::Tensor y = at::empty({batch, shape.out, 1, steps}, x.options(), in_order);
  y.copy_(bias.view({shape.out, 1, 1}));
  float* const to = y.mutable_data_ptr<float>();
  over_samples(batch, steps, [&](int64_t b, int64_t first, int64_t last) {
    add_all({last - first, window, shape.out,
             x.const_data_ptr<float>() + b * shape.time * shape.channels + first * shape.frame(), shape.frame(),
             panels.const_data_ptr<float>(), to + (b * steps + first) * shape.out, shape.out});
  });
  return y;
}

// Outputs that read nothing of each other's are added together: every taps()-th.
at::Tensor input_gradient(const TimeShape& shape, const at::Tensor& to_y, const at::Tensor& weight) {
  const int64_t batch = to_y.size(0), steps = shape.outputs(), window = window_of(shape), every = shape.taps();
  const at::Tensor by_out = weight.transpose(1, 2).contiguous();
  const at::Tensor panels = laid_out({shape.out, window, by_out.const_data_ptr<float>(), window, 1});
  at::Tensor to_x = at::empty({batch, shape.channels, 1, shape.time}, to_y.options(), in_order).zero_();
  float* const to = to_x.mutable_data_ptr<float>();
  at::parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t first = 0; first < std::min(every, steps); ++first) {
        add_all({(steps - first + every - 1) / every, shape.out, window,
                 to_y.const_data_ptr<float>() + (b * steps + first) * shape.out, every * shape.out,
                 panels.const_data_ptr<float>(), to + b * shape.time * shape.channels + first * shape.frame(),
                 every * shape.frame()});
      }
    }
  });
  return to_x;
}

// Samples in as many even parts as there are threads, each with sums of its own.
at::Tensor weight_gradient(const TimeShape& shape, const at::Tensor& to_y, const at::Tensor& x) {
  const int64_t batch = x.size(0), steps = shape.outputs(), window = window_of(shape);
  const int64_t parts = std::min<int64_t>(at::get_num_threads(), batch);
  at::Tensor sums = at::zeros({parts, window, shape.out}, x.options());
  float* const to = sums.mutable_data_ptr<float>();
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    Matrix sample{steps, shape.out, nullptr, shape.out, 1};
    at::Tensor panels = room_for(sample);
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t b = part * batch / parts; b < (part + 1) * batch / parts; ++b) {
        sample.values = to_y.const_data_ptr<float>() + b * steps * shape.out;
        lay_out(sample, 0, panel_count(shape.out), panels.mutable_data_ptr<float>());
        add_all({window, steps, shape.out, x.const_data_ptr<float>() + b * shape.time * shape.channels, 1,
                 panels.const_data_ptr<float>(), to + part * window * shape.out, shape.out, shape.frame()});
      }
    }
  });
  return sums.sum(0).view({shape.kernel, shape.channels, shape.out}).permute({2, 1, 0}).contiguous();
}

struct NarrowConvolution : torch::autograd::Function<NarrowConvolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride) {
    const at::Tensor x = given.contiguous(in_order);
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = stride;
    return output(time_shape_of(x, weight, stride), x, weight, bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], to_y = gradients[0].contiguous(in_order);
    const TimeShape shape = time_shape_of(x, weight, context->saved_data["stride"].toInt());
    variable_list result(4);
    if (context->needs_input_grad(0)) result[0] = input_gradient(shape, to_y, weight);
    if (context->needs_input_grad(1)) result[1] = weight_gradient(shape, to_y, x);
    if (context->needs_input_grad(2)) result[2] = to_y.permute({0, 2, 3, 1}).reshape({-1, shape.out}).sum(0);
    return result;
  }
};

}  // namespace

bool suits_narrow(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         weight.size(0) <= most_out && weight.size(1) * weight.size(2) <= most_window && x.size(3) >= weight.size(2) &&
         sdk::cpu_isa() != sdk::CpuIsa::baseline && !sdk::Autocast::now(x.device()).enabled;
}

at::Tensor convolve_narrow(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride) {
  return NarrowConvolution::apply(x, weight, bias, stride);
}

}  // namespace headroom
