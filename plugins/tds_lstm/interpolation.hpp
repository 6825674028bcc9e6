// Linear interpolation over time on sequences whose features are last, with own kernels where there are some.
#pragma once

#include <torch/torch.h>

namespace headroom {

enum class Corners { aligned, half_pixel };  // align_corners of torch.nn.functional.interpolate

// x [batch, time, features] -> [batch, steps, features]. `x` may be any view of that shape; `out_by_step`: the result
// is contiguous as [steps, batch, features].
at::Tensor interpolate_over_time(const at::Tensor& x, int64_t steps, Corners corners, bool out_by_step);

}  // namespace headroom
