#include "narrow_convolution.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "headroom/sdk/autocast.hpp"
#include "headroom/sdk/cpu_kernel.hpp"
#include "small_product.hpp"

namespace headroom {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Beyond these oneDNN is as fast: of the output's channels, and of the numbers that one step of it reads.
constexpr int64_t most_out = 64, most_window = 1024;
constexpr auto in_order = at::MemoryFormat::ChannelsLast;  // steps behind each other, each with its channels

struct NarrowShape {
  int64_t batch, time, channels, stride, kernel, out;

  int64_t steps() const { return (time - kernel) / stride + 1; }
  int64_t window() const { return kernel * channels; }  // numbers that a step of the output reads
  int64_t hop() const { return stride * channels; }     // from the first of a step to the first of the next
  int64_t of_x() const { return time * channels; }      // numbers of a sample
  int64_t of_y() const { return steps() * out; }
};

NarrowShape narrow_shape(const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  return {x.size(0), x.size(3), x.size(1), stride, weight.size(2), weight.size(0)};
}

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

// Every sample's output, which begins as the bias.
at::Tensor output(const NarrowShape& shape, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor by_window = weight.permute({2, 1, 0}).contiguous();
  const at::Tensor panels = laid_out({shape.window(), shape.out, by_window.const_data_ptr<float>(), shape.out, 1});
  at::Tensor y = at::empty({shape.batch, shape.out, 1, shape.steps()}, x.options(), in_order);
  y.copy_(bias.view({shape.out, 1, 1}));
  float* const to = y.mutable_data_ptr<float>();
  at::parallel_for(0, shape.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      add_all({shape.steps(), shape.window(), shape.out, x.const_data_ptr<float>() + b * shape.of_x(), shape.hop(),
               panels.const_data_ptr<float>(), to + b * shape.of_y(), shape.out});
  });
  return y;
}

// Steps whose windows do not overlap are added together: every so many of them.
at::Tensor input_gradient(const NarrowShape& shape, const at::Tensor& to_y, const at::Tensor& weight) {
  const at::Tensor by_out = weight.transpose(1, 2).contiguous();
  const at::Tensor panels = laid_out({shape.out, shape.window(), by_out.const_data_ptr<float>(), shape.window(), 1});
  at::Tensor to_x = at::empty({shape.batch, shape.channels, 1, shape.time}, to_y.options(), in_order).zero_();
  float* const to = to_x.mutable_data_ptr<float>();
  const int64_t every = (shape.kernel + shape.stride - 1) / shape.stride;
  at::parallel_for(0, shape.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t first = 0; first < std::min(every, shape.steps()); ++first) {
        const int64_t rows = (shape.steps() - first + every - 1) / every;
        add_all({rows, shape.out, shape.window(), to_y.const_data_ptr<float>() + b * shape.of_y() + first * shape.out,
                 every * shape.out, panels.const_data_ptr<float>(), to + b * shape.of_x() + first * shape.hop(),
                 every * shape.hop()});
      }
    }
  });
  return to_x;
}

// Samples in as many even parts as there are threads, each with sums of its own.
at::Tensor weight_gradient(const NarrowShape& shape, const at::Tensor& to_y, const at::Tensor& x) {
  const int64_t parts = std::min<int64_t>(at::get_num_threads(), shape.batch);
  at::Tensor sums = at::zeros({parts, shape.window(), shape.out}, x.options());
  float* const to = sums.mutable_data_ptr<float>();
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    Matrix sample{shape.steps(), shape.out, nullptr, shape.out, 1};
    at::Tensor panels = room_for(sample);
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t b = part * shape.batch / parts; b < (part + 1) * shape.batch / parts; ++b) {
        sample.values = to_y.const_data_ptr<float>() + b * shape.of_y();
        lay_out(sample, 0, panel_count(shape.out), panels.mutable_data_ptr<float>());
        add_all({shape.window(), shape.steps(), shape.out, x.const_data_ptr<float>() + b * shape.of_x(), 1,
                 panels.const_data_ptr<float>(), to + part * shape.window() * shape.out, shape.out, shape.hop()});
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
    return output(narrow_shape(x, weight, stride), x, weight, bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], to_y = gradients[0].contiguous(in_order);
    const NarrowShape shape = narrow_shape(x, weight, context->saved_data["stride"].toInt());
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
