// The optical flow of a clip at every level of the network, over one frame and more.
#pragma once

#include <torch/torch.h>
#include <vector>

#include "spynet.hpp"

namespace headroom {

// backward[j]: from frame t to what it shows in frame t + j + 1, at place t; forward[j]: from frame t + j + 1 to t.
// [n, frames - j - 1, 2, y, x] at every level.
struct Flows {
  std::vector<SpyNet::Flow> backward, forward;
};

// frames [n, frame, 3, y, x]; over 1 ... `steps` frames, at least one frame more than that.
Flows flows_of(const SpyNet& spynet, const at::Tensor& frames, int64_t steps);

}  // namespace headroom
