#include "flows.hpp"

#include "warp.hpp"

namespace headroom {
namespace {

at::Tensor frames_of(const at::Tensor& x, int64_t first, int64_t count) { return x.narrow(1, first, count); }

// `through` at the place where `along` leads, frame by frame.
at::Tensor follow(const at::Tensor& through, const at::Tensor& along) {
  const at::Tensor there = warp(through.flatten(0, 1), along.flatten(0, 1));
  return along + there.view(along.sizes());
}

// Both directions in one pass through the network.
void add_neighbours(const SpyNet& spynet, const at::Tensor& frames, Flows& flows) {
  const int64_t batch = frames.size(0), count = frames.size(1);
  const SpyNet::Pyramid all = spynet.pyramid(frames.flatten(0, 1));
  SpyNet::Pyramid reference, support;
  for (std::size_t level = 0; level < all.size(); ++level) {
    const at::Tensor clip = all[level].unflatten(0, {batch, count});
    const at::Tensor early = frames_of(clip, 0, count - 1).flatten(0, 1),
                     late = frames_of(clip, 1, count - 1).flatten(0, 1);
    reference[level] = at::cat({early, late});
    support[level] = at::cat({late, early});
  }
  const SpyNet::Flow both = spynet.forward(reference, support, frames.size(3), frames.size(4));
  flows.backward.emplace_back();
  flows.forward.emplace_back();
  for (std::size_t level = 0; level < both.size(); ++level) {
    const at::Tensor by_direction = both[level].unflatten(0, {2, batch, count - 1});
    flows.backward[0][level] = by_direction[0];
    flows.forward[0][level] = by_direction[1];
  }
}

}  // namespace

Flows flows_of(const SpyNet& spynet, const at::Tensor& frames, int64_t steps) {
  Flows flows;
  add_neighbours(spynet, frames, flows);
  for (std::size_t j = 1; j < static_cast<std::size_t>(steps); ++j) {
    const auto jump = static_cast<int64_t>(j);
    const int64_t count = frames.size(1) - 1 - jump;
    flows.backward.emplace_back();
    flows.forward.emplace_back();
    for (std::size_t level = 0; level < flows.backward[0].size(); ++level) {
      const at::Tensor &back = flows.backward[0][level], &ahead = flows.forward[0][level];
      flows.backward[j][level] =
          follow(frames_of(back, jump, count), frames_of(flows.backward[j - 1][level], 0, count));
      flows.forward[j][level] = follow(frames_of(ahead, 0, count), frames_of(flows.forward[j - 1][level], 1, count));
    }
  }
  return flows;
}

}  // namespace headroom
