#include "alignment.hpp"

#include <cmath>
#include <string>

#include "deform_conv.hpp"
#include "warp.hpp"

namespace headroom {
namespace {

at::Tensor with_zero_frames(const at::Tensor& x, int64_t before, int64_t after) {
  if (before + after == 0) return x;
  std::vector<int64_t> pad(2 * static_cast<std::size_t>(x.dim() - 1), 0);
  pad[pad.size() - 2] = before, pad[pad.size() - 1] = after;
  return at::constant_pad_nd(x, pad);
}

// (x, y) displacements added to offsets that alternate (y, x), neighbour by neighbour.
at::Tensor along_flows(const at::Tensor& offset, const TensorList& flows) {
  const TensorList parts = offset.chunk(static_cast<int64_t>(flows.size()), 1);
  TensorList moved;
  for (std::size_t j = 0; j < flows.size(); ++j)
    moved.push_back((parts[j].unflatten(1, {-1, 2}) + flows[j].flip(1).unsqueeze(1)).flatten(1, 2));
  return at::cat(moved, 1);
}

// One direction: `current` and the sources seen from it, frame by frame of the clip.
struct Direction {
  at::Tensor current;
  Sources sources;
};

// Frame t is seen from t - 1 ... (backward: later frames are brought to earlier ones), or the other way round. A
// neighbour outside the clip is zeros with a flow of zero.
Direction backward_direction(const at::Tensor& x, TensorSpan flows) {
  const int64_t count = x.size(1);
  Direction direction{x.narrow(1, 0, count - 1), {}};
  for (std::size_t j = 0; j < flows.size(); ++j) {
    const auto missing = static_cast<int64_t>(j);
    direction.sources.images.push_back(with_zero_frames(x.narrow(1, missing + 1, count - 1 - missing), 0, missing));
    direction.sources.flows.push_back(with_zero_frames(flows[j], 0, missing));
  }
  return direction;
}

Direction forward_direction(const at::Tensor& x, TensorSpan flows) {
  const int64_t count = x.size(1);
  Direction direction{x.narrow(1, 1, count - 1), {}};
  for (std::size_t j = 0; j < flows.size(); ++j) {
    const auto missing = static_cast<int64_t>(j);
    direction.sources.images.push_back(with_zero_frames(x.narrow(1, 0, count - 1 - missing), missing, 0));
    direction.sources.flows.push_back(with_zero_frames(flows[j], missing, 0));
  }
  return direction;
}

at::Tensor aligned(const Direction& direction, TensorSpan parameters, const AlignmentShape& shape) {
  const int64_t count = direction.current.size(1);
  TensorList frames;
  for (int64_t t = 0; t < count; ++t) {
    Sources sources;
    for (const at::Tensor& image : direction.sources.images)
      sources.images.push_back(image.select(1, t).permute({0, 3, 1, 2}));
    for (const at::Tensor& flow : direction.sources.flows) sources.flows.push_back(flow.select(1, t));
    const at::Tensor current = direction.current.select(1, t).permute({0, 3, 1, 2});
    frames.push_back(align(sources, current, parameters, shape).permute({0, 2, 3, 1}));
  }
  return at::stack(frames, 1);
}

}  // namespace

at::Tensor align(const Sources& sources, const at::Tensor& current, TensorSpan p, const AlignmentShape& shape) {
  TensorList seen;
  for (std::size_t j = 0; j < sources.images.size(); ++j) seen.push_back(warp(sources.images[j], sources.flows[j]));
  seen.push_back(current);
  seen.insert(seen.end(), sources.flows.begin(), sources.flows.end());
  at::Tensor o = at::cat(seen, 1);
  for (std::size_t i = 2; i < p.size(); i += 2) {
    o = at::conv2d(o, p[i], p[i + 1], 1, 1);
    if (i + 2 < p.size()) o = at::leaky_relu_(o, 0.1);
  }
  const int64_t taps = 9 * shape.deformable_groups;
  const at::Tensor offset = along_flows(o.narrow(1, 0, 2 * taps).tanh() * shape.reach, sources.flows);
  const at::Tensor mask = o.narrow(1, 2 * taps, taps).sigmoid();
  return deform_conv_gather(at::cat(sources.images, 1), offset, mask, p[0], p[1]);
}

at::Tensor warp_parallel(const at::Tensor& x, TensorSpan backward, TensorSpan forward, TensorSpan parameters,
                         const AlignmentShape& shape) {
  const at::Tensor from_later = aligned(backward_direction(x, backward), parameters, shape),
                   from_earlier = aligned(forward_direction(x, forward), parameters, shape);
  return at::cat({with_zero_frames(from_later, 0, 1), with_zero_frames(from_earlier, 1, 0)}, 4);
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
