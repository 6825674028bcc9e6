// Features moved along a flow.
#pragma once

#include <torch/torch.h>

namespace headroom {

// As warp(), zeros outside, for many channels in channels-last order: on the CPU in a kernel of our own, which looks at
// whole pixels' channels.
at::Tensor warp_features(const at::Tensor& x, const at::Tensor& flow);

}  // namespace headroom
