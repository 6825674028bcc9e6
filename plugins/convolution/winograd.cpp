#include "convolution/winograd.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "convolution/winograd_kernel.hpp"
#include "headroom/sdk/autocast.hpp"

namespace headroom {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t fewest_pixels = 256;    // with fewer the weight's transform takes longer than it saves
constexpr int64_t chunk_bytes = 2 << 20;  // of transformed tiles that wait for the weight's gradient
constexpr int64_t few_tiles = 32;  // that a thread takes at a time: what they are transformed to stays in its cache
constexpr int64_t many_pixels = 256, few_kernels = 256 * 256;
constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

// F(4x4, 3x3) takes three fifths of the products of F(2x2, 3x3), and twice the time and memory for the weight: it pays
// in larger images, and while the weight is not large. The number of images does not decide between the two.
Convolved shape_of(const at::Tensor& x, const at::Tensor& weight) {
  const int64_t height = x.size(2), width = x.size(3), in = weight.size(1), out = weight.size(0);
  const int64_t side = height * width >= many_pixels && in * out <= few_kernels ? 4 : 2;
  return {x.size(0), height, width, in, out, side};
}

at::Tensor empty_images(const at::Tensor& like, int64_t channels) {
  return at::empty({like.size(0), channels, like.size(2), like.size(3)}, at::kFloat, channels_last);
}

// Of all tiles; `backward`: of the gradient of what the weight makes.
at::Tensor convolved(const Convolved& shape, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                     const TileEpilogue& epilogue, bool backward) {
  const at::Tensor transformed = at::empty({shape.places(), shape.out, shape.in}, at::kFloat);
  const float *const from = weight.const_data_ptr<float>(), *const scales = scale.const_data_ptr<float>();
  float* const to = transformed.mutable_data_ptr<float>();
  at::parallel_for(0, winograd_panels(shape), 1, [&](int64_t first, int64_t last) {
    transform_weight(shape, from, scales, backward, first, last, to);
  });
  const int64_t at_once = std::max(few_tiles, shape.in / 8);  // a wide weight comes from afar
  const at::Tensor scratch = at::empty({at::get_num_threads(), winograd_scratch(shape, at_once)}, at::kFloat);
  const at::Tensor y = empty_images(x, shape.out);
  const float* const images = x.const_data_ptr<float>();
  float *const results = y.mutable_data_ptr<float>(), *const room = scratch.mutable_data_ptr<float>();
  at::parallel_for(0, shape.tiles(), at_once, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += at_once)
      convolve_tiles(shape, images, to, first, std::min(first + at_once, end), epilogue,
                     room + at::get_thread_num() * scratch.size(1), results);
  });
  return y;
}

at::Tensor weight_gradient(const Convolved& shape, const at::Tensor& x, const at::Tensor& to_y,
                           const at::Tensor& scale) {
  const int64_t tile_bytes = static_cast<int64_t>(sizeof(float)) * shape.places() * (shape.in + shape.out),
                most = chunk_bytes / tile_bytes,
                at_once = std::min(shape.tiles(), std::max<int64_t>(most, 2 * few_tiles)),
                products = shape.places() * winograd_panels(shape);
  const at::Tensor inputs = at::empty({shape.places(), place_stride(at_once, shape.in)}, at::kFloat),
                   gradients = at::empty({shape.places(), place_stride(at_once, shape.out)}, at::kFloat),
                   sums = at::empty({shape.places(), place_stride(shape.in, shape.out)}, at::kFloat);
  const float *const from = x.const_data_ptr<float>(), *const above = to_y.const_data_ptr<float>();
  float *const in = inputs.mutable_data_ptr<float>(), *const out = gradients.mutable_data_ptr<float>(),
               *const sum = sums.mutable_data_ptr<float>();
  for (int64_t first = 0; first < shape.tiles(); first += at_once) {
    const int64_t count = std::min(at_once, shape.tiles() - first);
    at::parallel_for(0, count, few_tiles, [&](int64_t begin, int64_t end) {
      transform_tiles(shape, from, above, first, count, begin, end, in, out);
    });
    at::parallel_for(0, products, 1, [&](int64_t begin, int64_t end) {
      multiply_tiles(shape, count, in, out, /*adds=*/first > 0, begin, end, sum);
    });
  }
  const at::Tensor to_weight = at::empty({shape.out, shape.in, 3, 3}, at::kFloat);
  const float* const scales = scale.const_data_ptr<float>();
  float* const to = to_weight.mutable_data_ptr<float>();
  at::parallel_for(0, winograd_panels(shape), 1,
                   [&](int64_t begin, int64_t end) { finish_weight_gradient(shape, sum, scales, begin, end, to); });
  return to_weight;
}

struct Winograd : torch::autograd::Function<Winograd> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& scale, const at::Tensor& shift, const std::optional<at::Tensor>& residual,
                            bool relu) {
    const at::Tensor added = residual ? residual->contiguous(channels_last) : at::Tensor();
    const at::Tensor y = convolved(
        shape_of(x, weight), x, weight, scale,
        {shift.const_data_ptr<float>(), residual ? added.const_data_ptr<float>() : nullptr, relu}, /*backward=*/false);
    context->save_for_backward({x, weight, scale, relu ? y : at::Tensor()});
    context->saved_data["adds"] = residual.has_value();
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &scale = saved[2], &cut = saved[3];
    const Convolved shape = shape_of(x, weight);
    at::Tensor to_y = gradients[0].contiguous(channels_last);
    if (cut.defined()) to_y = at::threshold_backward(to_y, cut, 0);
    variable_list result(6);
    if (context->needs_input_grad(0)) result[0] = convolved(turned(shape), to_y, weight, scale, {}, /*backward=*/true);
    if (context->needs_input_grad(1)) result[1] = weight_gradient(shape, x, to_y, scale);
    // LibTorch sums over one dimension much faster than over three.
    if (context->needs_input_grad(3)) result[3] = to_y.permute({0, 2, 3, 1}).flatten(0, 2).sum(0);
    if (context->saved_data["adds"].toBool()) result[4] = to_y;
    return result;
  }
};

}  // namespace

bool suits_winograd(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat && weight.is_contiguous() &&
         x.is_contiguous(channels_last) && !sdk::Autocast::now(x.device()).enabled && weight.size(2) == 3 &&
         weight.size(3) == 3 && has_winograd(weight.size(1), weight.size(0)) &&
         x.size(0) * x.size(2) * x.size(3) >= fewest_pixels;
}

at::Tensor convolve_winograd(const at::Tensor& x, const at::Tensor& weight, const Epilogue& epilogue) {
  const std::optional<at::Tensor> residual =
      epilogue.residual.defined() ? std::optional(epilogue.residual) : std::nullopt;
  const int64_t out = weight.size(0);
  const at::Tensor scale = epilogue.scale.defined() ? epilogue.scale.contiguous() : at::ones({out}, at::kFloat);
  const at::Tensor shift = epilogue.shift.defined() ? epilogue.shift.contiguous() : at::zeros({out}, at::kFloat);
  TORCH_CHECK(x.size(1) == weight.size(1) && scale.numel() == out && shift.numel() == out && !scale.requires_grad(),
              "a convolution's input, weight, scale and shift do not belong together");
  TORCH_CHECK(!residual || residual->sizes() == at::IntArrayRef({x.size(0), out, x.size(2), x.size(3)}),
              "what is added to a convolution has another shape than its output");
  return Winograd::apply(x, weight, scale, shift, residual, epilogue.relu);
}

}  // namespace headroom
