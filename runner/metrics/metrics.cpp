#include "metrics/metrics.hpp"

#include <cmath>
#include <limits>

namespace headroom {

StepSums::StepSums(size_t metrics, at::Device device, OutputMetrics outputs)
    : rows_(at::zeros({static_cast<int64_t>(metrics) + 1, 2}, at::TensorOptions(at::kDouble).device(device))),
      outputs_(std::move(outputs)) {}

void StepSums::zero() {
  rows_.zero_();
  outputs_.zero();
}

void StepSums::add(const StepResult& result) {
  at::NoGradGuard no_grad;
  // Put together first: what runs out of memory leaves the sums as they are.
  at::Tensor rows = at::empty_like(rows_);
  rows[0][0].copy_(result.loss_sum);
  rows[0][1].copy_(result.weight);
  if (rows.size(0) > 1) rows.slice(0, 1).copy_(result.metrics);
  outputs_.add(result.outputs);
  rows_.add_(rows);
}

void StepSums::add(const StepSums& other) {
  outputs_.add(other.outputs_);
  rows_.add_(other.rows_);
}

double StepSums::loss_sum() const { return rows_[0][0].item<double>(); }

double StepSums::weight() const { return rows_[0][1].item<double>(); }

double StepSums::loss() const {
  const at::Tensor row = rows_[0].cpu();
  const double weight = row[1].item<double>();
  return weight > 0 ? row[0].item<double>() / weight : std::numeric_limits<double>::quiet_NaN();
}

Measured StepSums::measured(const std::string& prefix, std::span<const MetricInfo> metrics) const {
  const at::Tensor rows = rows_.cpu();
  const auto* data = rows.const_data_ptr<double>();
  Scalars values;
  if (data[1] > 0) values.emplace_back(prefix + "/loss", data[0] / data[1]);
  for (size_t i = 0; i < metrics.size(); ++i) {
    const double sum = data[2 * (i + 1)], weight = data[2 * (i + 1) + 1];
    // Nothing counted.
    if (weight <= 0) continue;
    const double mean = sum / weight;
    values.emplace_back(prefix + "/" + metrics[i].name, metrics[i].reduction == HR_ROOT_MEAN ? std::sqrt(mean) : mean);
  }
  Measured measured = outputs_.measured(prefix);
  measured.values.insert(measured.values.begin(), values.begin(), values.end());
  return measured;
}

}  // namespace headroom
