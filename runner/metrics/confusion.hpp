// The confusion matrix: how often each class was predicted as each class. Counts are exact and the same for any split
// into micro-batches; memory is classes x classes integers. And what follows from it: accuracy; precision, recall and
// F1 of every class; the most frequent mistakes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "metrics/output_moments.hpp"

namespace headroom {

// The cells of the matrix that the elements of a micro-batch belong to.
struct ConfusionCells {
  at::Tensor cell;     // int64 [elements]: class x classes + predicted class
  at::Tensor counted;  // int64 [elements]: 1, or 0 where masked or of no class
};

// The cells for scores [..., classes] and integer targets [...], checked by tensors_of(). Does not synchronise the
// device.
ConfusionCells cells_of(const PairTensors& tensors, int64_t classes);

class Confusion {
 public:
  // Call it first, once.
  void make_room(int64_t classes, at::Device device);
  void zero();
  // Neither allocates device memory.
  void add(const ConfusionCells& cells);
  void add(const at::Tensor& matrix);

  // int64 [classes, classes], rows: true classes, columns: predicted ones; undefined before make_room().
  const at::Tensor& tensor() const { return matrix_; }

 private:
  at::Tensor matrix_;
};

struct ClassMetrics {
  int64_t count = 0;      // elements
  double accuracy = 0.0;  // their share on the diagonal
  double macro_f1 = 0.0;  // the mean of F1 over the classes that have one
  // For each class; NaN where the class was never predicted (precision), never occurs (recall), or neither (F1).
  std::vector<double> precision, recall, f1;
  std::vector<int64_t> support, predicted;  // elements of the class, and predicted as it
};

// `matrix`: [classes, classes], rows: true classes, columns: predicted ones.
ClassMetrics class_metrics(std::span<const int64_t> matrix, int64_t classes);

// The same for summary.json: {"count", "precision": [...], "recall", "f1", "support", "predicted", "names" where there
// are any, "confused": the ten most frequent mistakes [{"true", "predicted", "count", "share" of the true class}], and
// "matrix": rows, left out for more than most_classes_listed}. null stands for NaN.
nlohmann::json class_metrics_json(std::span<const int64_t> matrix, int64_t classes,
                                  const std::vector<std::string>& names);
inline constexpr int64_t most_classes_listed = 256;

}  // namespace headroom
