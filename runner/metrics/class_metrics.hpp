// What a confusion matrix says: accuracy, precision, recall and F1 of every class, and what is mistaken for what.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace headroom {

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
