// Rows of features in another order, in one copy each way.
#pragma once

#include <torch/torch.h>

namespace headroom {

// An order of rows and the way back: to.index[i] is the row that comes to place i, -1 for a row of zeros; every row
// comes to exactly one place, from.index[row].
struct RowOrder {
  at::Tensor to, from;  // int64, on the CPU
};

// [n, rows, c] -> [n, to.size(0), c]; and back, where what came from no row is dropped. Differentiable.
at::Tensor take_rows(const at::Tensor& x, const RowOrder& order);
at::Tensor put_back_rows(const at::Tensor& taken, const RowOrder& order);

}  // namespace headroom
