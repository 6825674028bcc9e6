#include "warp_features.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "warp.hpp"
#include "warp_sampling.hpp"

namespace headroom {
namespace {

constexpr int64_t kChannels = 16;  // of one thread at a time, in backward

template <class T>
WarpImage<T> image_of(const at::Tensor& x, const at::Tensor& flow, int64_t i) {
  return {x.size(1), x.size(2), x.size(3), x.const_data_ptr<T>() + i * x.stride(0),
          flow.const_data_ptr<T>() + i * flow.stride(0)};
}

template <class T>
at::Tensor run_forward(const at::Tensor& x, const at::Tensor& flow) {
  at::Tensor out = at::empty_like(x);
  const int64_t pixels = x.size(1) * x.size(2);
  at::parallel_for(0, x.size(0) * x.size(1), 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t i = row / x.size(1), first = row % x.size(1) * x.size(2);
      warp_pixels(image_of<T>(x, flow, i), first, first + x.size(2),
                  out.mutable_data_ptr<T>() + i * pixels * x.size(3));
    }
  });
  return out;
}

template <class T>
std::pair<at::Tensor, at::Tensor> run_backward(const at::Tensor& x, const at::Tensor& flow, const at::Tensor& above) {
  const int64_t parts = (x.size(3) + kChannels - 1) / kChannels;
  at::Tensor to_x = at::zeros_like(x), to_flow = at::empty({parts, x.size(0), x.size(1), x.size(2), 2}, x.options());
  at::parallel_for(0, x.size(0) * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const int64_t i = job / parts, part = job % parts, first = part * kChannels;
      warp_pixels_backward(image_of<T>(x, flow, i), first, std::min(first + kChannels, x.size(3)),
                           above.const_data_ptr<T>() + i * above.stride(0),
                           to_x.mutable_data_ptr<T>() + i * to_x.stride(0),
                           to_flow.mutable_data_ptr<T>() + part * to_flow.stride(0) + i * to_flow.stride(1));
    }
  });
  return {to_x, to_flow.sum(0)};
}

at::Tensor channels_last(const at::Tensor& images) { return images.permute({0, 2, 3, 1}).contiguous(); }
at::Tensor channels_first(const at::Tensor& x) { return x.permute({0, 3, 1, 2}); }

// Computes in the type of the flow; what is kept for backward stays as narrow as it was given.
struct WarpFeatures : torch::autograd::Function<WarpFeatures> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& flow) {
    const at::Tensor at_x = channels_last(x), at_flow = channels_last(flow);
    context->save_for_backward({at_x, at_flow});
    const at::ScalarType type = flow.scalar_type();
    const auto run = type == at::kDouble ? &run_forward<double> : &run_forward<float>;
    return channels_first(run(at_x.to(type), at_flow)).to(x.scalar_type());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::ScalarType type = saved[1].scalar_type();
    const auto run = type == at::kDouble ? &run_backward<double> : &run_backward<float>;
    const auto [x, flow] = run(saved[0].to(type), saved[1], channels_last(gradients[0]).to(type));
    return {channels_first(x), channels_first(flow)};
  }
};

}  // namespace

at::Tensor warp_features(const at::Tensor& x, const at::Tensor& flow) {
  return x.is_cpu() ? WarpFeatures::apply(x, flow) : warp(x, flow);
}

}  // namespace headroom
