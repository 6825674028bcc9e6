#include "winograd.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "headroom/sdk/autocast.hpp"
#include "time_convolution.hpp"
#include "winograd_kernel.hpp"

namespace headroom {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t least_width = 128;     // narrower layers have few products to save, and their tiles take memory too
constexpr int64_t fewest_tiles = 32;     // with fewer the weight's transform takes longer than it saves
constexpr int64_t part_bytes = 4 << 20;  // of transformed tiles at a time
constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

// Calls transform(shape, from, first, last, to) for all output channels, on all threads.
template <class Transform>
at::Tensor of_weight(const WinogradShape& shape, const at::Tensor& given, at::IntArrayRef sizes,
                     const Transform& transform) {
  const at::Tensor source = given.contiguous(), result = at::empty(sizes, source.options());
  const float* const from = source.const_data_ptr<float>();
  float* const to = result.mutable_data_ptr<float>();
  at::parallel_for(0, shape.out, 1, [&](int64_t first, int64_t last) { transform(shape, from, first, last, to); });
  return result;
}

at::Tensor transformed_weight(const WinogradShape& shape, const at::Tensor& weight) {
  return of_weight(shape, weight, {shape.places(), shape.out, shape.frame()}, transform_weight);
}

at::Tensor weight_gradient(const WinogradShape& shape, const at::Tensor& of_transformed) {
  return of_weight(shape, of_transformed, {shape.out, shape.channels, shape.kernel}, transform_weight_gradient);
}

// Calls work(first, count) for parts of the batch.
template <class Work>
void in_parts(const WinogradShape& shape, int64_t batch, const Work& work) {
  const int64_t numbers = shape.places() * shape.tiles() * (shape.frame() + shape.out);
  const int64_t most = std::max<int64_t>(1, part_bytes / (static_cast<int64_t>(sizeof(float)) * numbers));
  const int64_t parts = (batch + most - 1) / most;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * batch / parts;
    work(first, (part + 1) * batch / parts - first);
  }
}

int64_t numbers_of_a_sample(const at::Tensor& sequences) { return sequences.numel() / sequences.size(0); }

// Tiles of samples [first, first + count), [places, count * tiles, width].
template <class Transform>
at::Tensor to_tiles(const WinogradShape& shape, const at::Tensor& sequences, int64_t first, int64_t count,
                    int64_t width, const Transform& transform) {
  const int64_t tiles = shape.tiles(), numbers = numbers_of_a_sample(sequences);
  const at::Tensor result = at::empty({shape.places(), count * tiles, width}, sequences.options());
  const float* const from = sequences.const_data_ptr<float>() + first * numbers;
  float* const to = result.mutable_data_ptr<float>();
  over_samples(count, tiles, [&](int64_t sample, int64_t begin, int64_t end) {
    transform(shape, from + sample * numbers, begin, end, to + sample * tiles * width, result.stride(0));
  });
  return result;
}

// And back into samples from `first` on: transform(tiles of a sample, to the next place, begin, end, sample).
template <class Transform>
void from_tiles(const WinogradShape& shape, const at::Tensor& products, int64_t first, int64_t each,
                const at::Tensor& sequences, const Transform& transform) {
  const int64_t tiles = shape.tiles(), width = products.size(2), numbers = numbers_of_a_sample(sequences);
  const float* const from = products.const_data_ptr<float>();
  float* const to = sequences.mutable_data_ptr<float>() + first * numbers;
  over_samples(products.size(1) / tiles, each, [&](int64_t sample, int64_t begin, int64_t end) {
    transform(from + sample * tiles * width, products.stride(0), begin, end, to + sample * numbers);
  });
}

struct Winograd : torch::autograd::Function<Winograd> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride) {
    const at::Tensor x = given.contiguous(channels_last);
    const WinogradShape shape{time_shape_of(x, weight, stride)};
    const at::Tensor by_place = transformed_weight(shape, weight).transpose(1, 2), added = bias.contiguous();
    const at::Tensor y = at::empty({x.size(0), shape.out, 1, shape.outputs()}, x.options(), channels_last);
    in_parts(shape, x.size(0), [&](int64_t first, int64_t count) {
      const at::Tensor inputs = to_tiles(shape, x, first, count, shape.frame(), transform_input);
      from_tiles(shape, inputs.bmm(by_place), first, shape.tiles(), y,
                 [&](const float* from, int64_t to_next, int64_t begin, int64_t end, float* to) {
                   transform_output(shape, from, to_next, added.const_data_ptr<float>(), begin, end, to);
                 });
    });
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = stride;
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], to_y = gradients[0].contiguous(channels_last);
    const WinogradShape shape{time_shape_of(x, weight, context->saved_data["stride"].toInt())};
    at::Tensor by_place, to_x, to_transformed;
    if (context->needs_input_grad(0)) {
      by_place = transformed_weight(shape, weight);
      to_x = at::empty(x.sizes(), x.options(), channels_last);
    }
    in_parts(shape, x.size(0), [&](int64_t first, int64_t count) {
      const at::Tensor above = to_tiles(shape, to_y, first, count, shape.out, transform_output_gradient);
      if (to_x.defined()) {
        from_tiles(shape, above.bmm(by_place), first, shape.frame_groups(), to_x,
                   [&](const float* from, int64_t to_next, int64_t begin, int64_t end, float* to) {
                     transform_input_gradient(shape, from, to_next, begin, end, to);
                   });
      }
      if (!context->needs_input_grad(1)) return;
      const at::Tensor inputs = to_tiles(shape, x, first, count, shape.frame(), transform_input),
                       turned = above.transpose(1, 2);
      if (first == 0) {
        to_transformed = turned.bmm(inputs);
      } else {
        to_transformed.baddbmm_(turned, inputs);
      }
    });
    variable_list result(4);
    result[0] = to_x;
    if (to_transformed.defined()) result[1] = weight_gradient(shape, to_transformed);
    if (context->needs_input_grad(2)) result[2] = to_y.sum({0, 2, 3});
    return result;
  }
};

}  // namespace

bool suits_winograd(const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat ||
      x.size(3) < weight.size(2) || sdk::Autocast::now(x.device()).enabled)
    return false;
  const WinogradShape shape{time_shape_of(x, weight, stride)};
  return has_winograd(shape) && std::min(shape.channels, shape.out) >= least_width &&
         x.size(0) * shape.tiles() >= fewest_tiles;
}

at::Tensor convolve_winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride) {
  return Winograd::apply(x, weight, bias, stride);
}

}  // namespace headroom
