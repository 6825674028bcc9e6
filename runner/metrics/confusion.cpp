#include "metrics/confusion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "memory/ledger.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

constexpr size_t most_confused = 10;

// Of the target's shape.
at::Tensor expanded(at::Tensor mask, const at::Tensor& target) {
  while (mask.dim() < target.dim()) mask = mask.unsqueeze(-1);
  return mask.expand(target.sizes());
}

// NaN where there is nothing to divide by.
double share_of(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : std::numeric_limits<double>::quiet_NaN();
}

Json numbers_or_null(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(std::isfinite(value) ? Json(value) : Json());
  return list;
}

struct Mistake {
  int64_t row, column, count;
};

std::vector<Mistake> mistakes(std::span<const int64_t> matrix, int64_t classes) {
  std::vector<Mistake> found;
  // Equal ones stay in the order of the matrix.
  const auto more = [](const Mistake& a, const Mistake& b) { return a.count > b.count; };
  for (int64_t row = 0; row < classes; ++row) {
    for (int64_t column = 0; column < classes; ++column) {
      const Mistake here{row, column, matrix[static_cast<size_t>(row * classes + column)]};
      if (row == column || here.count == 0) continue;
      if (found.size() == most_confused && here.count <= found.back().count) continue;
      found.insert(std::ranges::upper_bound(found, here, more), here);
      if (found.size() > most_confused) found.pop_back();
    }
  }
  return found;
}

Json matrix_rows(std::span<const int64_t> matrix, int64_t classes) {
  Json rows = Json::array();
  for (int64_t row = 0; row < classes; ++row) {
    const auto cells = matrix.subspan(static_cast<size_t>(row * classes), static_cast<size_t>(classes));
    rows.push_back(std::vector<int64_t>(cells.begin(), cells.end()));
  }
  return rows;
}

}  // namespace

ConfusionCells cells_of(const PairTensors& tensors, int64_t classes) {
  const at::NoGradGuard no_grad;
  // Of equal scores argmax() takes the first.
  const at::Tensor predicted = tensors.prediction.argmax(-1), target = tensors.target.to(at::kLong);
  at::Tensor counted = target.ge(0).logical_and_(target.lt(classes));
  if (tensors.mask.defined()) counted.logical_and_(expanded(tensors.mask, target).ne(0));
  // What does not count goes to the first cell, where it adds 0.
  const at::Tensor cell = (target * classes + predicted).masked_fill_(counted.logical_not(), 0);
  return {cell.reshape({-1}), counted.to(at::kLong).reshape({-1})};
}

void Confusion::make_room(int64_t classes, at::Device device) {
  const OwnerScope owner(Owner::metrics);
  matrix_ = at::zeros({classes, classes}, at::TensorOptions(at::kLong).device(device));
}

void Confusion::zero() {
  if (matrix_.defined()) matrix_.zero_();
}

void Confusion::add(const ConfusionCells& cells) {
  const at::NoGradGuard no_grad;
  if (!matrix_.is_cpu()) {
    // Sums of integers: the order in which a GPU adds them does not matter.
    matrix_.view({-1}).scatter_add_(0, cells.cell, cells.counted);
    return;
  }
  // By hand: LibTorch's operator may allocate, and what is added here can no longer be taken back.
  auto* const counts = matrix_.mutable_data_ptr<int64_t>();
  const auto* const cell = cells.cell.const_data_ptr<int64_t>();
  const auto* const counted = cells.counted.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < cells.cell.numel(); ++i) counts[cell[i]] += counted[i];
}

void Confusion::add(const at::Tensor& matrix) {
  const at::NoGradGuard no_grad;
  matrix_.add_(matrix);
}

ClassMetrics class_metrics(std::span<const int64_t> matrix, int64_t classes) {
  const auto size = static_cast<size_t>(classes);
  ClassMetrics metrics;
  metrics.support.resize(size);
  metrics.predicted.resize(size);
  int64_t right = 0;
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      metrics.support[row] += matrix[row * size + column];
      metrics.predicted[column] += matrix[row * size + column];
    }
    right += matrix[row * size + row];
    metrics.count += metrics.support[row];
  }
  double f1_sum = 0.0;
  int64_t with_f1 = 0;
  for (size_t c = 0; c < size; ++c) {
    const int64_t hits = matrix[c * size + c], either = metrics.support[c] + metrics.predicted[c];
    metrics.precision.push_back(share_of(hits, metrics.predicted[c]));
    metrics.recall.push_back(share_of(hits, metrics.support[c]));
    metrics.f1.push_back(share_of(2 * hits, either));
    if (either > 0) f1_sum += metrics.f1.back(), ++with_f1;
  }
  metrics.accuracy = share_of(right, metrics.count);
  metrics.macro_f1 = f1_sum / static_cast<double>(with_f1);
  return metrics;
}

Json class_metrics_json(std::span<const int64_t> matrix, int64_t classes, const std::vector<std::string>& names) {
  const ClassMetrics metrics = class_metrics(matrix, classes);
  Json confused = Json::array();
  for (const Mistake& mistake : mistakes(matrix, classes)) {
    confused.push_back({{"true", mistake.row},
                        {"predicted", mistake.column},
                        {"count", mistake.count},
                        {"share", share_of(mistake.count, metrics.support[static_cast<size_t>(mistake.row)])}});
  }
  Json json = {{"count", metrics.count},
               {"precision", numbers_or_null(metrics.precision)},
               {"recall", numbers_or_null(metrics.recall)},
               {"f1", numbers_or_null(metrics.f1)},
               {"support", metrics.support},
               {"predicted", metrics.predicted},
               {"confused", confused}};
  if (!names.empty()) json["names"] = names;
  if (classes <= most_classes_listed) json["matrix"] = matrix_rows(matrix, classes);
  return json;
}

}  // namespace headroom
