// The confusion matrix: how often each class was taken for each other one, as exact counts, the same for any split into
// micro-batches, in the memory of classes x classes integers. And what it says: accuracy, precision, recall and F1 of
// every class, and what is mistaken for what.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

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
  // Once, before all else.
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

struct ClassMetrics {
  int64_t count = 0;      // elements
  double accuracy = 0.0;  // share of them on the diagonal
  double macro_f1 = 0.0;  // the mean of F1 over the classes that have one
  // Of each class; NaN where nothing was predicted to be it (precision), nothing is it (recall), or both (F1).
  std::vector<double> precision, recall, f1;
  std::vector<int64_t> support, predicted;  // elements of the class, and elements taken for it
};

// `matrix`: [classes, classes], a row a true class, a column a predicted one.
ClassMetrics class_metrics(std::span<const int64_t> matrix, int64_t classes);

// The same for summary.json: {"count", "precision": [...], "recall", "f1", "support", "predicted", "names" where there
// are any, "confused": the ten most frequent mistakes [{"true", "predicted", "count", "share" of the true class}], and
// "matrix": rows, left out for more than most_classes_listed}. null stands for NaN.
nlohmann::json class_metrics_json(std::span<const int64_t> matrix, int64_t classes,
                                  const std::vector<std::string>& names);
inline constexpr int64_t most_classes_listed = 256;

}  // namespace headroom
