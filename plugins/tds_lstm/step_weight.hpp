// A weight by which every step of a roll-out multiplies a few rows.
#pragma once

#include <torch/torch.h>

namespace headroom {

// A value; it shares `matrix`, which stays as it is meanwhile.
class StepWeight {
 public:
  // `matrix` [in, out]; also a transposed one. In float32 and for few rows it is laid out for small_product, in as much
  // memory as it has itself; otherwise LibTorch multiplies.
  StepWeight(const at::Tensor& matrix, int64_t rows);

  // c [rows, out] += a [rows, in] matrix, where rows of a and c are contiguous.
  void add_product(const at::Tensor& c, const at::Tensor& a) const;

 private:
  at::Tensor matrix_;
  at::Tensor panels_;  // undefined where LibTorch multiplies
};

}  // namespace headroom
