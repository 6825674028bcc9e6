#include "alignment.hpp"

#include <cmath>
#include <string>

#include "deform_conv.hpp"
#include "warp_features.hpp"

namespace headroom {
namespace {

at::Tensor with_zero_frames(const at::Tensor& x, int64_t before, int64_t after) {
  if (before + after == 0) return x;
  std::vector<int64_t> pad(2 * static_cast<std::size_t>(x.dim() - 1), 0);
  pad[pad.size() - 2] = before, pad[pad.size() - 1] = after;
  return at::constant_pad_nd(x, pad);
}

at::Tensor joined(const TensorList& images) { return images.size() == 1 ? images[0] : at::cat(images, 1); }

// One direction: `current` and the sources seen from it, frame by frame of the clip.
struct Direction {
  at::Tensor current;
  Sources sources;
};

// Every frame but the last seen from later ones (backward), or every one but the first from earlier ones. A neighbour
// outside the clip is zeros with a flow of zero.
Direction direction_of(const at::Tensor& x, TensorSpan flows, bool backward) {
  const int64_t count = x.size(1);
  Direction direction{x.narrow(1, backward ? 0 : 1, count - 1), {}};
  for (std::size_t j = 0; j < flows.size(); ++j) {
    const auto missing = static_cast<int64_t>(j);
    const int64_t before = backward ? 0 : missing, after = backward ? missing : 0;
    const at::Tensor seen = x.narrow(1, backward ? missing + 1 : 0, count - 1 - missing);
    direction.sources.images.push_back(with_zero_frames(seen, before, after));
    direction.sources.flows.push_back(with_zero_frames(flows[j], before, after));
  }
  return direction;
}

// As images: both directions' frames one after another, [n * 2 * frames, ...].
at::Tensor both_ways(const at::Tensor& earlier, const at::Tensor& later) {
  return at::stack({earlier, later}, 1).flatten(0, 2);
}

}  // namespace

at::Tensor align(const Sources& sources, const at::Tensor& current, TensorSpan p, const AlignmentShape& shape) {
  // Channels-last all of them, so that everything behind is.
  TensorList seen;
  for (std::size_t j = 0; j < sources.images.size(); ++j)
    seen.push_back(warp_features(sources.images[j], sources.flows[j]));
  seen.push_back(current);
  seen.insert(seen.end(), sources.flows.begin(), sources.flows.end());
  for (at::Tensor& each : seen) each = each.contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor o = at::cat(seen, 1);
  for (std::size_t i = 2; i < p.size(); i += 2) {
    o = convolve(o, p[i], p[i + 1]);
    if (i + 2 < p.size()) o = at::leaky_relu_(o, 0.1);
  }
  return deform_conv_along(joined(sources.images), o, joined(sources.flows), p[0], p[1], shape.reach);
}

at::Tensor warp_parallel(const at::Tensor& x, TensorSpan backward, TensorSpan forward, TensorSpan parameters,
                         const AlignmentShape& shape) {
  const Direction back = direction_of(x, backward, /*backward=*/true),
                  ahead = direction_of(x, forward, /*backward=*/false);
  const auto images = [](const at::Tensor& features) { return features.permute({0, 3, 1, 2}); };
  Sources sources;
  for (std::size_t j = 0; j < backward.size(); ++j) {
    sources.images.push_back(images(both_ways(back.sources.images[j], ahead.sources.images[j])));
    sources.flows.push_back(both_ways(back.sources.flows[j], ahead.sources.flows[j]));
  }
  const at::Tensor current = images(both_ways(back.current, ahead.current));
  const at::Tensor aligned =
      align(sources, current, parameters, shape).permute({0, 2, 3, 1}).unflatten(0, {x.size(0), 2, x.size(1) - 1});
  return at::cat({with_zero_frames(aligned.select(1, 0), 0, 1), with_zero_frames(aligned.select(1, 1), 1, 0)}, 4);
}

Alignment::Alignment(int64_t channels, const AlignmentShape& shape) : shape_(shape) {
  weight_ = register_parameter("weight", at::empty({channels, channels, 3, 3}));
  bias_ = register_parameter("bias", at::zeros({channels}));
  const double bound = 1.0 / std::sqrt(9.0 * static_cast<double>(channels));
  torch::nn::init::uniform_(weight_, -bound, bound);
  const int64_t seen = (1 + shape.neighbours) * channels + 2 * shape.neighbours;
  const std::array<int64_t, 5> widths = {seen, channels, channels, channels, 27 * shape.deformable_groups};
  for (std::size_t i = 0; i < conv_offset_.size(); ++i) {
    conv_offset_[i] = add_layer<Conv2d>(*this, "conv_offset." + std::to_string(2 * i), widths[i], widths[i + 1], 3);
  }
  // At first the flow alone decides, and every tap counts half.
  torch::nn::init::zeros_(conv_offset_.back()->weight);
  torch::nn::init::zeros_(conv_offset_.back()->bias);
}

TensorList Alignment::parameter_list() const {
  TensorList list = {weight_, bias_};
  for (const auto& conv : conv_offset_) list.insert(list.end(), {conv->weight, conv->bias});
  return list;
}

}  // namespace headroom
