// deform_conv_along() on the CPU: columns are sampled and multiplied a chunk of pixels at a time, and sampled again in
// backward.
#include <ATen/Parallel.h>
#include <algorithm>

#include "deform_conv.hpp"
#include "deform_sampling.hpp"

namespace headroom {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 19;

at::Tensor channels_last(const at::Tensor& images) { return images.permute({0, 2, 3, 1}).contiguous(); }
at::Tensor channels_first(const at::Tensor& x) { return x.permute({0, 3, 1, 2}); }

// [W, 9 * in / W, out / W], rows as a pixel's columns
at::Tensor by_tap(const at::Tensor& weight, int64_t parts) {
  return weight.view({parts, weight.size(0) / parts, weight.size(1), kTaps})
      .permute({0, 3, 2, 1})
      .flatten(1, 2)
      .contiguous();
}
at::Tensor as_weight(const at::Tensor& tapped, const at::Tensor& like) {
  return tapped.unflatten(1, {kTaps, like.size(1)}).permute({0, 3, 2, 1}).reshape(like.sizes());
}

// Both channels-last; a batch of images and what was computed about it.
struct Geometry {
  int64_t parts, groups, rows, columns, channels, pixels, chunk;
  double reach;

  Geometry(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow, double reach_)
      : parts(flow.size(3) / 2),
        groups(raw.size(3) / 27),
        rows(x.size(1)),
        columns(x.size(2)),
        channels(x.size(3)),
        pixels(rows * columns),
        chunk(std::clamp<int64_t>(kChunkElements / (kTaps * channels), 1, pixels)),
        reach(reach_) {}

  template <class T>
  DeformImage<T> image(int64_t i, const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow) const {
    return {rows,
            columns,
            channels,
            groups,
            parts,
            static_cast<T>(reach),
            x.const_data_ptr<T>() + i * pixels * channels,
            raw.const_data_ptr<T>() + i * pixels * 27 * groups,
            flow.const_data_ptr<T>() + i * pixels * 2 * parts};
  }
  at::Tensor column_buffer(const at::Tensor& x) const {
    return at::empty({chunk, parts, kTaps * channels / parts}, x.options());
  }
};

template <class T>
void sample(const DeformImage<T>& image, int64_t begin, int64_t end, at::Tensor& buffer) {
  T* const columns = buffer.mutable_data_ptr<T>();
  at::parallel_for(begin, end, 64, [&](int64_t from, int64_t to) {
    sample_columns(image, from, to, columns + (from - begin) * kTaps * image.channels);
  });
}

// columns [pixels, W, 9 * in / W] times tapped, into out [pixels, W * out / W]
void multiply_into(const at::Tensor& columns, const at::Tensor& tapped, const at::Tensor& bias, at::Tensor out) {
  const int64_t parts = tapped.size(0), outputs = tapped.size(2);
  for (int64_t part = 0; part < parts; ++part) {
    at::Tensor into = out.narrow(1, part * outputs, outputs);
    at::addmm_out(into, bias.narrow(0, part * outputs, outputs), columns.select(1, part), tapped[part]);
  }
}

template <class T>
at::Tensor run_forward(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow, const at::Tensor& weight,
                       const at::Tensor& bias, double reach) {
  const Geometry g(x, raw, flow, reach);
  const at::Tensor tapped = by_tap(weight, g.parts);
  at::Tensor result = at::empty({x.size(0), g.pixels, weight.size(0)}, x.options()), buffer = g.column_buffer(x);
  for (int64_t i = 0; i < x.size(0); ++i) {
    const DeformImage<T> image = g.image<T>(i, x, raw, flow);
    for (int64_t begin = 0; begin < g.pixels; begin += g.chunk) {
      const int64_t count = std::min(g.chunk, g.pixels - begin);
      sample(image, begin, begin + count, buffer);
      multiply_into(buffer.narrow(0, 0, count), tapped, bias, result[i].narrow(0, begin, count));
    }
  }
  return result.view({x.size(0), g.rows, g.columns, -1});
}

struct Gradients {
  at::Tensor x, raw, flow, tapped;
};

template <class T>
Gradients run_backward(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow, const at::Tensor& weight,
                       const at::Tensor& gradient, double reach) {
  const Geometry g(x, raw, flow, reach);
  const at::Tensor tapped = by_tap(weight, g.parts);
  const int64_t outputs = tapped.size(2), per_part = g.groups / g.parts;
  Gradients to{at::zeros_like(x), at::empty_like(raw), at::empty_like(flow), at::zeros_like(tapped)};
  at::Tensor columns = g.column_buffer(x), by_group = at::empty({g.chunk, g.parts, per_part, 2}, x.options());
  for (int64_t i = 0; i < x.size(0); ++i) {
    const DeformImage<T> image = g.image<T>(i, x, raw, flow);
    const DeformGradients<T> given{to.x.mutable_data_ptr<T>() + i * g.pixels * g.channels,
                                   to.raw.mutable_data_ptr<T>() + i * g.pixels * 27 * g.groups,
                                   by_group.mutable_data_ptr<T>()};
    for (int64_t begin = 0; begin < g.pixels; begin += g.chunk) {
      const int64_t count = std::min(g.chunk, g.pixels - begin);
      const at::Tensor above = gradient[i].narrow(0, begin, count), used = columns.narrow(0, 0, count);
      sample(image, begin, begin + count, columns);
      for (int64_t part = 0; part < g.parts; ++part) {
        const at::Tensor of_part = above.narrow(1, part * outputs, outputs);
        to.tapped[part].addmm_(used.select(1, part).t(), of_part);
        at::Tensor into = used.select(1, part);
        at::mm_out(into, of_part, tapped[part].t());
      }
      at::parallel_for(0, g.groups, 1, [&](int64_t first, int64_t last) {
        scatter_gradients(image, begin, begin + count, first, last, used.const_data_ptr<T>(), given);
      });
      to.flow[i].view({g.pixels, g.parts, 2}).narrow(0, begin, count).copy_(by_group.narrow(0, 0, count).sum(2));
    }
  }
  return to;
}

// Computes in the type of the parameters; what is kept for backward stays as narrow as it was given.
struct DeformConvAlong : torch::autograd::Function<DeformConvAlong> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& raw,
                            const at::Tensor& flow, const at::Tensor& weight, const at::Tensor& bias, double reach) {
    const at::Tensor at_x = channels_last(x), at_raw = channels_last(raw), at_flow = channels_last(flow);
    context->save_for_backward({at_x, at_raw, at_flow, weight});
    context->saved_data["reach"] = reach;
    const at::ScalarType type = weight.scalar_type();
    const auto run = type == at::kDouble ? &run_forward<double> : &run_forward<float>;
    const at::Tensor result = run(at_x.to(type), at_raw.to(type), at_flow.to(type), weight.contiguous(), bias, reach);
    return channels_first(result).to(x.scalar_type());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor weight = saved[3].contiguous();
    const at::ScalarType type = weight.scalar_type();
    const at::Tensor gradient = channels_last(gradients[0]).flatten(1, 2).to(type);
    const double reach = context->saved_data["reach"].toDouble();
    const auto run = type == at::kDouble ? &run_backward<double> : &run_backward<float>;
    const Gradients to = run(saved[0].to(type), saved[1].to(type), saved[2].to(type), weight, gradient, reach);
    return {channels_first(to.x),         channels_first(to.raw), channels_first(to.flow),
            as_weight(to.tapped, weight), gradient.sum({0, 1}),   {}};
  }
};

}  // namespace

at::Tensor deform_conv_along(const at::Tensor& x, const at::Tensor& raw, const at::Tensor& flow,
                             const at::Tensor& weight, const at::Tensor& bias, double reach) {
  const bool ours = x.is_cpu() && raw.size(1) / 27 % (flow.size(1) / 2) == 0;
  return ours ? DeformConvAlong::apply(x, raw, flow, weight, bias, reach)
              : deform_conv_along_gather(x, raw, flow, weight, bias, reach);
}

}  // namespace headroom
