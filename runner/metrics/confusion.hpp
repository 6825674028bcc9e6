// How often each class was taken for each other one: exact counts, the same for any split into micro-batches, in the
// memory of classes x classes integers.
#pragma once

#include "metrics/output_moments.hpp"

namespace headroom {

// Where the elements of one micro-batch belong in the matrix.
struct ConfusionCells {
  at::Tensor cell;     // int64 [elements]: class x classes + predicted class
  at::Tensor counted;  // int64 [elements]: 1, or 0 for what is masked or belongs to no class
};

// Of scores [..., classes] and a target [...] of integers, as tensors_of() lets them pass. Nothing synchronises.
ConfusionCells cells_of(const PairTensors& tensors, int64_t classes);

class Confusion {
 public:
  // Must come before what is added; does nothing the second time.
  void make_room(int64_t classes, at::Device device);
  void zero();
  // Neither allocates memory of the device.
  void add(const ConfusionCells& cells);
  void add(const at::Tensor& matrix);

  // int64 [classes, classes], a row a true class, a column a predicted one; undefined before make_room().
  const at::Tensor& tensor() const { return matrix_; }

 private:
  at::Tensor matrix_;
};

}  // namespace headroom
